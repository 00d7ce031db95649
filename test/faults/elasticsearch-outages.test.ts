import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { EngineProxy, isBulk, isMerge, type Hold } from '../support/engine-proxy.js';
import { useOwnEngine } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { HANG_SECONDS } from '../support/long-runs.js';
import { logLines, REBUILD, useService, type Service, type SuiteService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const OLD = bundledPackages().slice(0, 3000);
const NEW = bundledPackages().slice(0, 8000);

// In one file, because every start of Elasticsearch takes both processors for twelve seconds.
describe('With an Elasticsearch that fails,', function () {
  this.timeout(180_000);
  const engine = useOwnEngine('elasticsearch');

  describe('a rebuild', () => {
    let proxy: EngineProxy;
    before(async () => {
      proxy = await EngineProxy.start(engine().url);
    });
    const rebuilding = () =>
      useService(
        () => OLD,
        () => ({ ELASTICSEARCH_URL: proxy.url, REDIS_URL: '', ...UNCACHED }),
      );
    const suite = rebuilding();
    /** At another step during the same outage, because each restart takes half a minute. */
    const merging = rebuilding();
    const reading = useBackgroundReader(suite, [OLD.length, NEW.length]);
    /** Another registry on the same engine, which is not being rebuilt. */
    const other = useService(
      () => packagesNamed(['alpha', 'beta']),
      () => ({ ELASTICSEARCH_URL: engine().url, ...UNCACHED }),
    );
    after(() => proxy.close());

    /** Starts a rebuild that is held at a request. */
    async function rebuildUntil(
      { dataset, service }: SuiteService,
      ...rule: Parameters<EngineProxy['hold']>
    ): Promise<Hold> {
      await dataset.write(toCsv(NEW));
      const hold = proxy.hold(...rule);
      expect((await service.get(`${REBUILD}&force=true`)).status).to.equal(202);
      await hold.arrived;
      return hold;
    }

    /** Takes Elasticsearch down and up again. Readers may get 503 meanwhile, but no wrong response. */
    async function whileAway(down: () => Promise<void>, act: () => Promise<void>, up: () => Promise<void>) {
      reading.engineMayBeAway = true;
      await down();
      await act().finally(up);
      for (const { service } of [suite, merging, other]) await expectRecovered(service);
      reading.engineMayBeAway = false;
    }

    async function expectRecovered(service: Service): Promise<void> {
      const isOk = async (path: string) => (await service.get(path)).status === 200;
      await waitFor(() => isOk('/search?q=lib'), 'recovery without intervention', 30_000);
      await waitFor(() => isOk('/health'), '/health to recover', 3000);
    }

    async function expectRebuilt({ service }: SuiteService): Promise<void> {
      await service.idle(90_000);
      expect((await service.get('/health')).body.total_packages).to.equal(NEW.length);
      expect(await service.indices()).to.have.length(2);
    }

    /** Asserts what other endpoints do while searches are unavailable. */
    async function expectUnavailable(): Promise<void> {
      const get = (path: string) => other.service.get(path);
      for (const path of ['/search?q=alpha', '/browse']) {
        const began = performance.now();
        expectProblem(await get(path), 503, 'search_unavailable');
        expect(performance.now() - began, 'milliseconds').to.be.lessThan(2000);
      }
      await waitFor(async () => (await get('/health')).status === 503, '/health to notice', 5000);
      const health = await get('/health');
      expect(health.body).to.deep.equal({ status: 'unavailable', total_packages: 2 });
      expect(health.headers.get('Retry-After')).to.equal('2');
      expectProblem(await get(REBUILD), 503, 'search_unavailable');
      for (const path of ['/ping', '/stats']) expect((await get(path)).status, path).to.equal(200);
    }

    it('is not affected while the cluster refuses searches', async () => {
      const { service } = other;
      const allow = (isAllowed: boolean | null) =>
        service.elasticsearch.cluster.putSettings({
          persistent: { 'search.allow_expensive_queries': isAllowed },
        });
      reading.engineMayBeAway = true;
      await allow(false);
      try {
        expectProblem(await service.get('/search?q=alp'), 503, 'search_unavailable');
        const isUnavailable = async () => (await service.get('/health')).body.status === 'unavailable';
        await waitFor(isUnavailable, '/health to notice', 3000);
        expect((await suite.service.rebuild('&force=true')).status).to.equal(202);
      } finally {
        await allow(null);
      }
      for (const each of [suite, other]) await expectRecovered(each.service);
      reading.engineMayBeAway = false;
      expect(JSON.stringify(logLines)).to.contain('search.allow_expensive_queries');
    });

    it(`resumes its load after Elasticsearch hung for ${HANG_SECONDS} seconds`, async () => {
      const hold = await rebuildUntil(suite, 'before', isBulk);
      const before = reading.away.length;
      await whileAway(
        () => engine().pause(),
        async () => {
          hold.release();
          await pause(HANG_SECONDS * 1000);
          expect(reading.away.length, 'reads during the outage').to.be.greaterThan(before);
        },
        () => engine().resume(),
      );
      await expectRebuilt(suite);
    });

    it('resumes its load or its merge after Elasticsearch was killed', async () => {
      const holds = [
        await rebuildUntil(merging, 'after', isMerge),
        await rebuildUntil(suite, 'after', isBulk),
      ];
      await whileAway(
        () => engine().kill(),
        async () => {
          for (const hold of holds) hold.release();
          await expectUnavailable();
        },
        () => engine().restart(),
      );
      for (const one of [suite, merging]) await expectRebuilt(one);
    });

    reading.itNoticesNothing();
  });
});
