import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { isBuildOf, isChangesOf } from '../../src/search/index-names.js';
import { bundledPackages } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { useBackgroundReader } from '../support/background-reader.js';
import {
  BYPASS_SECRET,
  newSlug,
  REBUILD,
  useService,
  type Service,
  type SuiteService,
} from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** End of the index name of a build that crashed long ago. */
const OLD_BUILD = '20200101t000000z-0123abcd';

/**
 * Suffixes of a sibling's slug that could be confused with the first registry: its names start like the alias
 * of the first, like the alias of its previous generation, like its changes, and like one of its builds.
 */
const ALIKE = ['-packages', '-packages-previous', '-packages-changes', `-packages-${OLD_BUILD}`];

const DIRECTIONS = [
  ['first', 'second'],
  ['second', 'first'],
] as const;

/** Short enough for each of these suffixes. */
const shortSlug = () => `t${randomBytes(2).toString('hex')}`;

const FIRST = bundledPackages().slice(0, 600);
const SECOND = bundledPackages().slice(600, 1600);

for (const suffix of ALIKE) {
  describe(`Two registries on the same engines, \`<slug>\` and \`<slug>${suffix}\`,`, function () {
    this.timeout(120_000);
    const slug = shortSlug();
    const first = useService(() => FIRST, undefined, { slug });
    const second = useService(() => SECOND, undefined, { slug: slug + suffix });
    const both = { first, second };
    const readers = [
      useBackgroundReader(first, [FIRST.length]),
      useBackgroundReader(second, [SECOND.length]),
    ];

    /** The indices of one registry, distinguished by the longer slug. */
    async function indicesOf({ service }: SuiteService) {
      const { elasticsearch } = service;
      const all = Object.entries(await elasticsearch.indices.get({ index: `${slug}-*` }));
      const isSecond = (name: string) => name.startsWith(`${slug}${suffix}-packages-`);
      return Object.fromEntries(all.filter(([name]) => isSecond(name) === (service === second.service)));
    }

    /** The state of a registry as operators and clients see it. */
    async function stateOf(suite: SuiteService) {
      const answers = [];
      for (const path of ['/search?q=lib&limit=500', '/browse?limit=500', '/changes', '/health']) {
        const { status, text, headers } = await suite.service.get(path);
        answers.push({ status, text, etag: headers.get('ETag') });
      }
      return { indices: await indicesOf(suite), answers };
    }

    async function rollBack({ slug: of }: Service): Promise<void> {
      const { elasticsearch, redis } = await engines();
      const env = { ELASTICSEARCH_URL: elasticsearch.url, REDIS_URL: redis.url, REGISTRY_SLUG: of };
      const command = new SpawnedCli('src/cli/rollback.ts', env);
      expect(await command.exit(), command.stderr).to.equal(0);
    }

    async function rebuild({ service }: SuiteService): Promise<void> {
      const before = await service.get('/search?q=lib');
      expect((await service.rebuild()).status).to.equal(202);
      expect(service.server.rebuilds.lastFailure).to.equal(undefined);
      const after = await service.get('/search?q=lib');
      expect(after.headers.get('ETag')).not.to.equal(before.headers.get('ETag'));
      expect(after.text).to.equal(before.text);
    }

    for (const [one, other] of DIRECTIONS) {
      it(`allow the ${one} to rebuild, roll back, clean up and prune without affecting the other`, async () => {
        const { service } = both[one];
        const { elasticsearch, alias } = service;
        const before = await stateOf(both[other]);
        const crashed = `${alias}-${OLD_BUILD}`;
        await elasticsearch.indices.create({ index: crashed, aliases: { [`${crashed}-loading`]: {} } });
        await rebuild(both[one]);
        await rollBack(service);
        await rebuild(both[one]);
        await rebuild(both[one]);
        const names = Object.keys(await indicesOf(both[one]));
        expect(names.filter((name) => isChangesOf(alias, name))).to.have.length(2);
        expect(names.filter((name) => isBuildOf(alias, name)))
          .to.have.length(2)
          .and.to.not.include(crashed);
        expect(await stateOf(both[other])).to.deep.equal(before);
      });

      // Operators can make indices read-only, and Elasticsearch does so on a full disk.
      it(`allow the ${one} to rebuild while the other's indices are read-only`, async () => {
        const { elasticsearch } = both[other].service;
        const index = Object.keys(await indicesOf(both[other]));
        await elasticsearch.indices.addBlock({ index, block: 'read_only' });
        try {
          await rebuild(both[one]);
        } finally {
          await elasticsearch.indices.putSettings({ index, settings: { 'index.blocks.read_only': null } });
        }
      });
    }

    it('can rebuild at the same time', async () => {
      const answers = [await first.service.get(REBUILD), await second.service.get(REBUILD)];
      expect(answers.map(({ status }) => status)).to.deep.equal([202, 202]);
      for (const { service } of [first, second]) {
        const { progress } = service.server.rebuilds;
        const again = await service.get(REBUILD);
        expectProblem(again, 503, 'rebuilding');
        expect(again.body.started_at).to.equal(progress?.startedAt);
      }
      await Promise.all([first.service.idle(), second.service.idle()]);
      for (const { service } of [first, second])
        expect(service.server.rebuilds.lastFailure).to.equal(undefined);
    });

    for (const reader of readers) reader.itNoticesNothing();

    for (const [one, other] of DIRECTIONS) {
      it(`allow the other to serve and rebuild after the ${one} has lost all its generations`, async () => {
        const { service } = both[one];
        const { generations } = service.server;
        const lost = generations.current?.index;
        const before = await stateOf(both[other]);
        await service.elasticsearch.indices.delete({ index: Object.keys(await indicesOf(both[one])) });
        expect(await stateOf(both[other])).to.deep.equal(before);
        await rebuild(both[other]);
        // It reloads its snapshot automatically.
        await waitFor(
          () => generations.engine === 'present' && generations.current?.index !== lost,
          'the data',
        );
        expect((await service.get('/stats')).status).to.equal(200);
      });
    }
  });
}

describe('Two registries on the same engines', function () {
  this.timeout(60_000);
  const POINTS = 4;
  const slug = newSlug();
  // Both registries have the same secrets.
  const env = () => ({
    RATE_LIMIT_POINTS: String(POINTS),
    RATE_LIMIT_WINDOW_SECONDS: '300',
    METRICS_PORT: '0',
    // So that each test can use its own client address.
    TRUSTED_PROXIES: '127.0.0.1',
  });
  const first = useService(() => FIRST, env, { slug });
  const second = useService(() => SECOND, env, { slug: `${slug}-packages` });
  const both = { first, second };
  const as = (ip: string, headers: Record<string, string> = {}) => ({
    headers: { 'X-Forwarded-For': ip, ...headers },
  });

  for (const [i, [one, other]] of DIRECTIONS.entries()) {
    it(`have separate request budgets: the ${other} accepts a client that has used up that of the ${one}`, async () => {
      const client = as(`198.51.100.${i}`);
      for (let n = 0; n < POINTS; n++) await both[one].service.get('/stats', client);
      expectProblem(await both[one].service.get('/stats', client), 429, 'rate_limited');
      const { status, headers } = await both[other].service.get('/stats', client);
      expect(status).to.equal(200);
      expect(headers.get('RateLimit')).to.match(new RegExp(`^"reading";r=${POINTS - 1};`));
    });

    it(`count wrong secrets separately: the ${other} accepts a client that is locked out by the ${one}`, async () => {
      const client = as(`198.51.101.${i}`);
      const path = `/get-bypass?secret=${BYPASS_SECRET}`;
      for (let n = 0; n < 10; n++) await both[one].service.get('/get-bypass?secret=wrong', client);
      expectProblem(await both[one].service.get(path, client), 429, 'rate_limited');
      expectProblem(await both[other].service.get('/rebuild?secret=wrong', client), 403, 'forbidden');
      expect((await both[other].service.get(path, client)).status).to.equal(200);
    });

    it(`do not share bypass tokens: one of the ${one} is invalid at the ${other}`, async () => {
      const { body } = await both[one].service.get(`/get-bypass?secret=${BYPASS_SECRET}`);
      const client = as(`198.51.102.${i}`, { 'X-Bypass-Token': body.bypass_token as string });
      const valid = async ({ service }: SuiteService) =>
        (await service.get('/debug-ip', client)).body.bypass.valid as boolean;
      expect(await valid(both[one])).to.equal(true);
      expect(await valid(both[other])).to.equal(false);
      for (let n = 0; n < POINTS; n++) await both[other].service.get('/stats', client);
      expectProblem(await both[other].service.get('/stats', client), 429, 'rate_limited');
    });

    it(`name the registry in each metric: those of the ${one}`, async () => {
      const { service } = both[one];
      const text = await (await fetch(`${service.server.metricsUrl}/metrics`)).text();
      const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      const labels = samples.map((line) => /[{,]registry="([^"]*)"/.exec(line)?.[1]);
      expect(samples).to.have.length.greaterThan(50);
      expect(new Set(labels)).to.deep.equal(new Set([service.slug]));
    });

    it(`start each key in Redis with the slug: those of the ${one}`, async () => {
      const { service, dataset } = both[one];
      const ip = `198.51.103.${i}`;
      const keys = await keysUsed(async () => {
        await service.get('/stats', as(ip));
        await service.get('/debug-ip', as(ip));
        await service.get('/rebuild?secret=wrong', as(ip));
        await service.rebuild();
        await dataset.write('');
        await service.rebuild();
        expect(service.server.rebuilds.lastFailure).not.to.equal(undefined);
      });
      // `service.rebuild()` is counted by the address of the test itself.
      const limits = [`debug:${ip}`, `reading:${ip}`, 'secrets:127.0.0.1', `secrets:${ip}`];
      const rebuilds = ['last-failure', 'lock', 'progress'];
      expect(keys).to.deep.equal([
        ...limits.map((name) => `${service.slug}:limit:${name}`),
        ...rebuilds.map((name) => `${service.slug}:rebuild:${name}`),
      ]);
    });
  }
});

/** The Redis keys that `act` uses, as Redis itself parses the commands. */
async function keysUsed(act: () => Promise<void>): Promise<string[]> {
  const redis = new Redis((await engines()).redis.url);
  const monitor = await redis.monitor();
  try {
    const commands: string[][] = [];
    monitor.on('monitor', (_time: string, command: string[]) => commands.push(command));
    await act();
    const keys = await Promise.all(commands.map((command) => keysOf(redis, command)));
    return [...new Set(keys.flat())].sort();
  } finally {
    monitor.disconnect();
    redis.disconnect();
  }
}

async function keysOf(redis: Redis, command: string[]): Promise<string[]> {
  if (command.length === 1) return [];
  return redis.call('COMMAND', 'GETKEYS', ...command).then(
    (keys) => keys as string[],
    (error: unknown) => {
      if (/no key arguments/.test(String(error))) return [];
      throw error;
    },
  );
}
