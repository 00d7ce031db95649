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

/** What follows the alias in the name of a build that crashed long ago. */
const OLD_BUILD = '20200101t000000z-0123abcd';

/**
 * What makes of a slug another one that the service could mistake for it: the sibling's names begin like the alias of
 * the first, like the alias of its previous generation, like its changes, and like one of its builds.
 */
const ALIKE = ['-packages', '-packages-previous', '-packages-changes', `-packages-${OLD_BUILD}`];

const DIRECTIONS = [
  ['first', 'second'],
  ['second', 'first'],
] as const;

/** Short enough for each of these behind it. */
const shortSlug = () => `t${randomBytes(2).toString('hex')}`;

const FIRST = bundledPackages().slice(0, 600);
const SECOND = bundledPackages().slice(600, 1600);

for (const suffix of ALIKE) {
  describe(`Two registries on the same engines, \`<slug>\` and \`<slug>${suffix}\``, function () {
    this.timeout(120_000);
    const slug = shortSlug();
    const first = useService(() => FIRST, undefined, { slug });
    const second = useService(() => SECOND, undefined, { slug: slug + suffix });
    const both = { first, second };
    const readers = [
      useBackgroundReader(first, [FIRST.length]),
      useBackgroundReader(second, [SECOND.length]),
    ];

    /** The indices of the one, by its longer name or by not having it. */
    async function indicesOf({ service }: SuiteService) {
      const { elasticsearch } = service;
      const all = Object.entries(await elasticsearch.indices.get({ index: `${slug}-*` }));
      const isSecond = (name: string) => name.startsWith(`${slug}${suffix}-packages-`);
      return Object.fromEntries(all.filter(([name]) => isSecond(name) === (service === second.service)));
    }

    /** All that operators and clients see of a registry. */
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
      it(`lets the ${one} rebuild, roll back, clean up and prune, and leaves the other as it is`, async () => {
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

      // As an operator may close them, or Elasticsearch by itself where a disk is full.
      it(`lets the ${one} rebuild while the other's indices are closed to all changes`, async () => {
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

    it('lets both rebuild at the same time', async () => {
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
      it(`lets the other serve and rebuild when the ${one} has lost all its generations`, async () => {
        const { service } = both[one];
        const { generations } = service.server;
        const lost = generations.current?.index;
        const before = await stateOf(both[other]);
        await service.elasticsearch.indices.delete({ index: Object.keys(await indicesOf(both[one])) });
        expect(await stateOf(both[other])).to.deep.equal(before);
        await rebuild(both[other]);
        // It loads its snapshot anew by itself.
        await waitFor(
          () => generations.engine === 'present' && generations.current?.index !== lost,
          'the data',
        );
        expect((await service.get('/stats')).status).to.equal(200);
      });
    }
  });
}

describe('What two registries on the same engines count and keep', function () {
  this.timeout(60_000);
  const POINTS = 4;
  const slug = newSlug();
  // With the same secrets, too.
  const env = () => ({
    RATE_LIMIT_POINTS: String(POINTS),
    RATE_LIMIT_WINDOW_SECONDS: '300',
    METRICS_PORT: '0',
    // So that each test can be a client of its own.
    TRUSTED_PROXIES: '127.0.0.1',
  });
  const first = useService(() => FIRST, env, { slug });
  const second = useService(() => SECOND, env, { slug: `${slug}-packages` });
  const both = { first, second };
  const as = (ip: string, headers: Record<string, string> = {}) => ({
    headers: { 'X-Forwarded-For': ip, ...headers },
  });

  for (const [i, [one, other]] of DIRECTIONS.entries()) {
    it(`is a budget of requests for each: that of the ${other} is whole when the ${one}'s is used up`, async () => {
      const client = as(`198.51.100.${i}`);
      for (let n = 0; n < POINTS; n++) await both[one].service.get('/stats', client);
      expectProblem(await both[one].service.get('/stats', client), 429, 'rate_limited');
      const { status, headers } = await both[other].service.get('/stats', client);
      expect(status).to.equal(200);
      expect(headers.get('RateLimit')).to.match(new RegExp(`^"reading";r=${POINTS - 1};`));
    });

    it(`is a count of wrong secrets for each: the ${other} hears who is locked out by the ${one}`, async () => {
      const client = as(`198.51.101.${i}`);
      const path = `/get-bypass?secret=${BYPASS_SECRET}`;
      for (let n = 0; n < 10; n++) await both[one].service.get('/get-bypass?secret=wrong', client);
      expectProblem(await both[one].service.get(path, client), 429, 'rate_limited');
      expectProblem(await both[other].service.get('/rebuild?secret=wrong', client), 403, 'forbidden');
      expect((await both[other].service.get(path, client)).status).to.equal(200);
    });

    it(`is no bypass token: one of the ${one} is worth nothing at the ${other}`, async () => {
      const { body } = await both[one].service.get(`/get-bypass?secret=${BYPASS_SECRET}`);
      const client = as(`198.51.102.${i}`, { 'X-Bypass-Token': body.bypass_token as string });
      const valid = async ({ service }: SuiteService) =>
        (await service.get('/debug-ip', client)).body.bypass.valid as boolean;
      expect(await valid(both[one])).to.equal(true);
      expect(await valid(both[other])).to.equal(false);
      for (let n = 0; n < POINTS; n++) await both[other].service.get('/stats', client);
      expectProblem(await both[other].service.get('/stats', client), 429, 'rate_limited');
    });

    it(`is each metric, which says whose it is: those of the ${one}`, async () => {
      const { service } = both[one];
      const text = await (await fetch(`${service.server.metricsUrl}/metrics`)).text();
      const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      const labels = samples.map((line) => /[{,]registry="([^"]*)"/.exec(line)?.[1]);
      expect(samples).to.have.length.greaterThan(50);
      expect(new Set(labels)).to.deep.equal(new Set([service.slug]));
    });

    it(`is each key in Redis, which begins with the slug: those that the ${one} uses`, async () => {
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
      // `service.rebuild()` has the address of the test itself.
      const limits = [`debug:${ip}`, `reading:${ip}`, 'secrets:127.0.0.1', `secrets:${ip}`];
      const rebuilds = ['last-failure', 'lock', 'progress'];
      expect(keys).to.deep.equal([
        ...limits.map((name) => `${service.slug}:limit:${name}`),
        ...rebuilds.map((name) => `${service.slug}:rebuild:${name}`),
      ]);
    });
  }
});

/** The keys that Redis is asked for meanwhile, as Redis itself reads the commands. */
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
