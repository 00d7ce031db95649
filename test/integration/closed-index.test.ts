import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { runCommand } from '../support/spawn-cli.js';
import { UNCACHED } from '../support/background-reader.js';
import { expectSearch } from '../support/expect-search.js';
import { servedIndex } from '../support/served-index.js';
import { logLines, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('An index that an operator closes', function () {
  this.timeout(60_000);
  const packages = packagesNamed(['alpha', 'beta']);
  const suite = useService(
    () => packages,
    () => UNCACHED,
  );

  const health = async () => (await suite.service.get('/health')).body.status as string;

  it('causes 503 until it is opened', async () => {
    const { elasticsearch } = suite.service;
    const index = await servedIndex(suite.service);
    await elasticsearch.indices.close({ index });
    for (const path of ['/search?q=alpha', '/browse']) {
      expectProblem(await suite.service.get(path), 503, 'search_unavailable');
    }
    await waitFor(async () => (await health()) === 'unavailable', '/health to notice');
    expect(logLines.map(({ msg }) => msg)).to.include(
      'the index behind the alias is closed: open it, or rebuild',
    );
    expectProblem(await suite.service.get('/search?q=alpha'), 503, 'search_unavailable');
    await elasticsearch.indices.open({ index });
    await waitFor(async () => (await health()) === 'ok', '/health to recover');
    await expectSearch(suite.service, 'alpha', ['alpha']);
  });

  it('is replaced by a rebuild, but not selected by a rollback', async () => {
    const { elasticsearch, env } = suite.service;
    const index = await servedIndex(suite.service);
    await elasticsearch.indices.close({ index });
    await suite.service.refresh();
    expect(await health()).to.equal('unavailable');
    await suite.publish(packages);
    expect(await health()).to.equal('ok');
    await expectSearch(suite.service, 'alpha', ['alpha']);
    const stderr = `${index} is closed: open it first\n`;
    expect(await runCommand('cli/rollback', env)).to.include({ code: 1, stderr });
    await suite.service.refresh();
    expect(await health()).to.equal('ok');
    await suite.publish(packages);
    const left = await elasticsearch.indices.get({
      index: `${index.split('-2')[0]}-2*`,
      expand_wildcards: 'all',
    });
    expect(Object.keys(left)).to.have.length(2).and.not.to.include(index);
  });

  it('is pruned, also if it has the previous snapshot or recorded changes', async () => {
    const { elasticsearch } = suite.service;
    const named = async (pattern: string) =>
      Object.keys(await elasticsearch.indices.get({ index: pattern, expand_wildcards: 'all' }));
    const current = await servedIndex(suite.service);
    const [alias = ''] = current.split('-2');
    await suite.publish(packagesNamed(['alpha', 'gamma']));
    const changes = await named(`${alias}-changes-*`);
    expect(changes).not.to.be.empty;
    await elasticsearch.indices.close({ index: [current, ...changes] });
    await suite.publish(packages);
    const left = [...(await named(`${alias}-2*`)), ...(await named(`${alias}-changes-*`))];
    for (const closed of [current, ...changes]) expect(left).not.to.include(closed);
    expect(await health()).to.equal('ok');
    expect((await suite.service.get('/changes')).status).to.equal(200);
  });
});
