import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { UNCACHED } from '../support/background-reader.js';
import { useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

describe('An index that an operator closes', function () {
  this.timeout(60_000);
  const suite = useService(
    () => packagesNamed(['alpha', 'beta']),
    () => UNCACHED,
  );

  const health = async () => (await suite.service.get('/health')).body.status as string;

  it('causes 503, not 500, and is served again once it is opened', async () => {
    const { elasticsearch, server } = suite.service;
    const index = server.generations.current?.index ?? '';
    await elasticsearch.indices.close({ index });
    for (const path of ['/search?q=alpha', '/browse']) {
      expectProblem(await suite.service.get(path), 503, 'search_unavailable');
    }
    await waitFor(async () => (await health()) === 'unavailable', '/health to notice', 5000);
    expect(server.generations.stateReason).to.contain('is closed');
    expectProblem(await suite.service.get('/search?q=alpha'), 503, 'search_unavailable');
    await elasticsearch.indices.open({ index });
    await waitFor(async () => (await health()) === 'ok', '/health to recover', 5000);
    expect((await suite.service.get('/search?q=alpha')).body.count).to.equal(1);
  });

  it('is replaced by a rebuild', async () => {
    const { elasticsearch, server } = suite.service;
    const index = server.generations.current?.index ?? '';
    await elasticsearch.indices.close({ index });
    await waitFor(async () => (await health()) === 'unavailable', '/health to notice', 5000);
    expect((await suite.service.rebuild()).status).to.equal(202);
    expect(server.rebuilds.lastFailure).to.be.undefined;
    expect(await health()).to.equal('ok');
    expect((await suite.service.get('/search?q=alpha')).body.count).to.equal(1);
  });

  it('is not selected by a rollback', async () => {
    const { elasticsearch, redis } = await engines();
    const command = new SpawnedCli('src/cli/rollback.ts', {
      ELASTICSEARCH_URL: elasticsearch.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: suite.service.slug,
    });
    expect(await command.exit()).to.equal(1);
    expect(command.stderr).to.match(/^\S+ is closed: open it first\n$/);
    expect(await health()).to.equal('ok');
  });
});
