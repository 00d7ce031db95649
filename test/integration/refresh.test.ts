import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { createIndex } from '../../src/publish/create.js';
import { rollBack } from '../../src/publish/rollback.js';
import { loadingAliasOf, newIndexName } from '../../src/snapshot/index-names.js';
import { datasetServer } from '../support/dataset-server.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { namesAt } from '../support/expect-search.js';
import { refreshes } from '../support/refreshes.js';
import { metaWith } from '../support/snapshot-meta.js';
import { listServer, type Answer, type ListServer } from '../support/list-server.js';
import { newSlug, rebuildHere, startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { useReplicaStarter } from '../support/replica-starter.js';
import { STEP } from '../support/step.js';

describe('A periodic refresh', function () {
  this.timeout(180_000);
  const suite = useService(() => packagesNamed(['alpha']));
  const changed = {
    REGISTRY_SOURCE: 'other.example',
    PACKAGE_URL_TEMPLATE: 'https://other.example/{name}',
  };

  it('rebuilds an unchanged dataset once if a setting of the index has changed', async () => {
    const { service } = suite;
    const meta = metaWith(1);
    // Left by a rebuild that was killed before its flip, and by one that was killed while it pruned.
    const unserved = newIndexName(service.alias, new Date(0));
    const replaced = newIndexName(service.alias, new Date(1000));
    for (const index of [unserved, replaced])
      await createIndex(service.elasticsearch, 'packages', { index, meta }, STEP);
    await service.elasticsearch.indices.deleteAlias({ index: replaced, name: loadingAliasOf(replaced) });
    for (const env of [{}, changed]) {
      const variables = { DATASET_URL: suite.dataset.url, REBUILD_INTERVAL_SECONDS: '1', ...env };
      const replica = await startService(variables, service.slug);
      await refreshes(replica, 1);
      expect(replica.outcomes().rebuilt).to.equal(env === changed ? 1 : 0);
      expect(await service.indices()).to.have.length(env === changed ? 2 : 1);
      await replica.stop();
    }
    expect((await service.get('/stats')).body.source).to.equal('other.example');
  });

  it('downloads a document with a new tag again at each refresh, until its content changes', async () => {
    let csv = toCsv(packagesNamed(['alpha']));
    let tag = '"one"';
    let sent = 0;
    const origin = await datasetServer((request, response) => {
      const isKnown = request.headers['if-none-match'] === tag;
      if (!isKnown) sent++;
      response.writeHead(isKnown ? 304 : 200, { ETag: tag }).end(isKnown ? '' : csv);
    });
    const slug = newSlug();
    await rebuildHere({ DATASET_URL: origin.url }, slug);
    tag = '"two"';
    const variables = { DATASET_URL: origin.url, REBUILD_INTERVAL_SECONDS: '1' };
    const replica = await startService(variables, slug);
    await refreshes(replica, 2);
    expect(sent).to.be.at.least(3);
    expect(replica.outcomes().rebuilt).to.equal(0);
    csv = toCsv(packagesNamed(['beta']));
    await waitFor(() => replica.outcomes().rebuilt === 1, 'the new content', 60_000);
    await refreshes(replica, 2);
    const sentNow = sent;
    await refreshes(replica, 2);
    expect(sent).to.equal(sentNow);
    await replica.end();
    await origin.close();
  });
});

describe('A periodic refresh after a rollback', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['first']));
  const startReplica = useReplicaStarter(suite);

  it('builds neither the rolled-back nor the served dataset, but every new dataset', async () => {
    const { dataset, service } = suite;
    await suite.publish(packagesNamed(['second']));
    // Before refreshes begin: one of them may hold the lock at any moment.
    await rollBack(service.elasticsearch, service.alias, STEP);
    const indices = await service.indices();
    const refreshing = await startReplica({ REBUILD_INTERVAL_SECONDS: '1' });
    const name = async () => (await refreshing.get('/browse')).body.results[0].name as string;
    await refreshes(refreshing, 1);
    expect(await name()).to.equal('first');
    expect(await service.indices()).to.deep.equal(indices);
    await dataset.write(toCsv(packagesNamed(['third'])));
    await waitFor(async () => (await name()) === 'third', 'the new dataset', 20_000);
    // It is served before the oldest index is deleted.
    await refreshing.idle();
    const rebuilt = (await service.indices()).sort();
    await refreshes(refreshing, 1);
    expect(await name()).to.equal('third');
    expect((await service.indices()).sort()).to.deep.equal(rebuilt);
  });
});

/** Lists that say nothing new on each request: one by its validator, one in pages whose bytes are others each time. */
const UNCHANGED: Record<string, (names: string[], url: URL, condition: string | undefined) => Answer> = {
  lines: (names, _url, condition) => (response) => {
    const etag = `"${names.join('-')}"`;
    response.writeHead(condition === etag ? 304 : 200, { ETag: etag });
    response.end(condition === etag ? '' : `${names.join('\n')}\n`);
  },
  npm: (names, { searchParams }) => {
    const start = JSON.parse(searchParams.get('startkey') ?? '""') as string;
    const rows = names.filter((name) => name >= start).map((id) => ({ id, value: { rev: randomUUID() } }));
    return JSON.stringify({ rows: rows.slice(0, 2) });
  },
};

for (const [format, answer] of Object.entries(UNCHANGED)) {
  describe(`Three replicas that refresh a list of the format ${format}`, function () {
    this.timeout(60_000);
    const INTERVAL_SECONDS = 2;

    let names = ['alpha', 'beta', 'gamma'];
    const asked: number[] = [];
    const replicas: Service[] = [];
    let origin: ListServer;
    const count = (outcome: 'rebuilt' | 'unchanged' | 'failed') =>
      replicas.reduce((sum, { outcomes }) => sum + outcomes()[outcome], 0);

    before(async () => {
      origin = await listServer((url, { 'if-none-match': condition }) => {
        if (!url.searchParams.has('startkey')) asked.push(performance.now());
        return answer(names, url, condition);
      });
      const env = {
        DATASET_URL: `${origin.origin}/list`,
        DATASET_FORMAT: format,
        PACKAGE_URL_TEMPLATE: 'https://registry.example/{+name}',
        REBUILD_INTERVAL_SECONDS: String(INTERVAL_SECONDS),
      };
      const slug = newSlug();
      await rebuildHere(env, slug);
      for (let i = 0; i < 3; i++) replicas.push(await startService(env, slug));
    });
    after(async () => {
      for (const replica of replicas.slice(1)) await replica.stop();
      await replicas[0]?.end();
      await origin.close();
    });

    it('request it once per interval without a build', async () => {
      await waitFor(() => count('unchanged') > 2, 'refreshes', 30_000);
      expect(count('rebuilt')).to.equal(0);
      expect(await replicas[0]?.indices()).to.have.length(1);
      // The first request is that of the build. A refresh may start half an interval late, and the next one in time.
      const [, start = 0, ...later] = asked;
      const intervals = ((later.at(-1) ?? 0) - start) / (INTERVAL_SECONDS * 1000);
      expect(later.length, 'requests').to.be.at.most(intervals + 0.5);
    });

    it('serve a changed list that one of them has built', async () => {
      names = ['alpha', 'beta', 'delta'];
      for (const replica of replicas) {
        const isServed = async () => (await namesAt(replica, '/browse')).join() === names.join();
        await waitFor(isServed, 'the changed list', 30_000);
      }
      expect({ rebuilt: count('rebuilt'), failed: count('failed') }).to.deep.equal({ rebuilt: 1, failed: 0 });
    });
  });
}
