import { expect } from 'chai';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { datasetServer } from '../support/dataset-server.js';
import { engines } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { REBUILD, startService, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** A day in milliseconds. */
const DAY_MS = 86_400_000;

describe('A dataset with an impossible date', function () {
  this.timeout(60_000);
  const dates = ['Sat, 01 Jan 10000 00:00:00 GMT', 'Fri, 31 Dec 9999 23:59:59 GMT', 'Thu, 99 Foo 2020', ''];
  let lastModified = dates[0] ?? '';

  for (const date of dates) {
    it(`is dated with the current time: ${JSON.stringify(date)}`, async () => {
      lastModified = date;
      const origin = await datasetServer((_request, response) => {
        response.setHeader('Last-Modified', lastModified).end(toCsv(packagesNamed(['alpha'])));
      });
      const service = await startService({ DATASET_URL: origin.url });
      try {
        await waitFor(async () => (await service.get('/health')).status === 200, 'the first snapshot');
        await service.idle();
        const { note } = (await service.get('/stats')).body as { note: string };
        const taken = Date.parse(/taken at (\S+Z)/.exec(note)?.[1] ?? '');
        expect(taken).to.be.closeTo(Date.now(), DAY_MS);
        expect((await service.rebuild('&force=true')).status).to.equal(202);
        expect(service.server.rebuilds.lastFailure).to.be.undefined;
      } finally {
        await service.end();
        await origin.close();
      }
    });
  }
});

describe('An index with an unreadable _meta', function () {
  this.timeout(60_000);
  const suite = useService(() => bundledPackages().slice(0, 1000));

  /** Overwrites the `_meta` of the served index, as another version of the service might. */
  async function overwriteMeta(_meta: Record<string, unknown>): Promise<string> {
    const { elasticsearch, server } = suite.service;
    const index = server.generations.current?.index ?? '';
    await elasticsearch.indices.putMapping({ index, _meta });
    await server.generations.refresh();
    return index;
  }

  async function command(script: string): Promise<{ code: number | null; stderr: string }> {
    const { elasticsearch, redis } = await engines();
    const program = new SpawnedCli(script, {
      ELASTICSEARCH_URL: elasticsearch.url,
      REDIS_URL: redis.url,
      REGISTRY_SLUG: suite.service.slug,
      DATASET_URL: suite.dataset.url,
    });
    return { code: await program.exit(), stderr: program.stderr };
  }

  const unreadable: [what: string, meta: Record<string, unknown>][] = [
    ['of a newer version', { schema_version: 2, packages: 1000 }],
    ['with an impossible date', { schema_version: 1, total: 1, taken_at: '+010000-01-01T00:00:00.000Z' }],
    ['that is empty', {}],
  ];
  for (const [what, meta] of unreadable) {
    it(`is reported, not served, and replaced by a rebuild: one ${what}`, async () => {
      const index = await overwriteMeta(meta);
      expect(suite.service.server.generations.engine).to.equal('unusable');
      expect((await suite.service.get('/health')).body.status).to.equal('unavailable');
      // Served from the last readable state of the generation.
      expect((await suite.service.get('/search?q=lib')).status).to.equal(200);
      const fresh = await startService({}, suite.service.slug);
      expectProblem(await fresh.get('/search?q=lib'), 503, 'search_unavailable');
      expect((await fresh.get('/health')).body).to.deep.equal({ status: 'unavailable', total_packages: 0 });
      expect((await suite.service.rebuild()).status).to.equal(202);
      expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
      expect(suite.service.server.generations.current?.index).not.to.equal(index);
      await waitFor(async () => (await fresh.get('/health')).status === 200, 'the other replica');
      await fresh.stop();
    });
  }

  it('can be replaced by `npm run rebuild`', async () => {
    await overwriteMeta({ schema_version: 2 });
    expect(await command('src/cli/rebuild.ts')).to.include({ code: 0 });
    await waitFor(async () => (await suite.service.get('/health')).status === 200, 'the replica');
  });

  it('does not prevent `npm run rollback`, which never selects it', async () => {
    const index = await overwriteMeta({ schema_version: 2 });
    // The previous generation is an unreadable one from the tests above.
    const { code, stderr } = await command('src/cli/rollback.ts');
    expect({ code, stderr }).to.include({ code: 1 });
    expect(stderr).to.contain('was written by another version of the service');
    expect((await suite.service.rebuild('&force=true')).status).to.equal(202);
    const rebuilt = suite.service.server.generations.current?.index;
    expect(rebuilt).not.to.equal(index);

    expect((await suite.service.rebuild()).status).to.equal(202);
    await overwriteMeta({ schema_version: 2 });
    expect(await command('src/cli/rollback.ts')).to.include({ code: 0 });
    await waitFor(() => suite.service.server.generations.current?.index === rebuilt, 'the rollback');
    expectProblem(await suite.service.get('/search?q=a'), 400, 'invalid_parameter');
    expect((await suite.service.get(REBUILD)).status).to.equal(202);
    await suite.service.idle();
  });
});
