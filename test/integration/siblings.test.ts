import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { rollBack } from '../../src/publish/rollback.js';
import { isSnapshotOf, isChangesOf } from '../../src/snapshot/index-names.js';
import { UNCACHED } from '../support/background-reader.js';
import { bundledPackages } from '../support/datasets.js';
import { useOwnEngine } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { scrape } from '../support/metrics.js';
import {
  BYPASS_SECRET,
  newSlug,
  REBUILD,
  startService,
  useService,
  type SuiteService,
} from '../support/service.js';
import { STEP } from '../support/step.js';
import { waitFor } from '../support/wait-for.js';

const GUIDE = new URL('../../docs/deployment.md', import.meta.url);

/** End of the index name of a rebuild that crashed long ago. */
const OLD_BUILD = '20200101t000000z-0123abcd';

/**
 * Suffixes of a sibling's slug that could be confused with the first registry: its names start like the aliases of the
 * first, or like its changes. All others: test/unit/snapshot/index-names.test.ts.
 */
const ALIKE = ['-packages-v2', '-packages-v2-changes'];

const FIRST = bundledPackages().slice(0, 100);
const SECOND = bundledPackages().slice(600, 800);

/** The indices of a registry, by its own names. */
async function indicesOf({ service: { elasticsearch, alias } }: SuiteService) {
  const all = Object.entries(await elasticsearch.indices.get({ index: `${alias}-*` }));
  return Object.fromEntries(all.filter(([name]) => isSnapshotOf(alias, name) || isChangesOf(alias, name)));
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

describe('A registry next to siblings with similar names', function () {
  this.timeout(120_000);
  // Short enough for each of these suffixes.
  const slug = `t${randomBytes(2).toString('hex')}`;
  const first = useService(
    () => FIRST,
    () => UNCACHED,
    { slug },
  );
  const siblings = ALIKE.map((suffix) =>
    useService(
      () => SECOND,
      () => UNCACHED,
      { slug: slug + suffix },
    ),
  );
  const all = [first, ...siblings];
  const statesOfOthers = (suite: SuiteService) =>
    Promise.all(all.filter((one) => one !== suite).map(stateOf));

  // The index patterns of the last one match no name of the others.
  for (const [i, suite] of all.slice(0, -1).entries()) {
    it(`rebuilds, rolls back, cleans up and prunes without affecting the others: <slug>${['', ...ALIKE][i]}`, async () => {
      const { elasticsearch, alias } = suite.service;
      const before = await statesOfOthers(suite);
      const crashed = `${alias}-${OLD_BUILD}`;
      await elasticsearch.indices.create({ index: crashed, aliases: { [`${crashed}-loading`]: {} } });
      await suite.publish(SECOND);
      await rollBack(elasticsearch, alias, STEP);
      await suite.publish(FIRST);
      const names = Object.keys(await indicesOf(suite));
      const indices = names.filter((index) => isSnapshotOf(alias, index));
      expect(indices).to.have.length(2).and.to.not.include(crashed);
      expect(await statesOfOthers(suite)).to.deep.equal(before);
    });
  }

  // Operators can make indices read-only, and Elasticsearch does so on a full disk.
  it('rebuilds while the indices of the others are read-only', async () => {
    const { elasticsearch } = first.service;
    const index = (await Promise.all(siblings.map(indicesOf))).flatMap((indices) => Object.keys(indices));
    await elasticsearch.indices.addBlock({ index, block: 'read_only' });
    try {
      await first.publish(SECOND);
    } finally {
      await elasticsearch.indices.putSettings({ index, settings: { 'index.blocks.read_only': null } });
    }
  });

  it('reloads lost snapshots without affecting the others', async () => {
    const { elasticsearch } = first.service;
    const lost = await first.service.snapshot();
    const before = await statesOfOthers(first);
    await elasticsearch.indices.delete({ index: Object.keys(await indicesOf(first)) });
    const isReloaded = async () => ![lost, ''].includes(await first.service.snapshot());
    await waitFor(isReloaded, 'the data', 20_000);
    await first.service.idle();
    expect((await first.service.get('/stats')).status).to.equal(200);
    expect(await statesOfOthers(first)).to.deep.equal(before);
  });

  it('rebuilds at the same time as other registries', async () => {
    const two = all.slice(0, 2);
    for (const { service } of two) expect((await service.get(REBUILD)).status).to.equal(202);
    for (const { service } of two) {
      await service.idle();
      expect(service.failure()).to.equal(undefined);
    }
  });
});

describe('Two registries on the same engines', function () {
  this.timeout(60_000);
  const POINTS = 4;
  const slug = newSlug();
  const redis = useOwnEngine('redis');
  // Both registries have the same secrets.
  const env = () => ({
    REDIS_URL: redis().url,
    RATE_LIMIT_POINTS: String(POINTS),
    RATE_LIMIT_WINDOW_SECONDS: '300',
    METRICS_PORT: '0',
    // So that each test can use its own client address.
    TRUSTED_PROXIES: '127.0.0.1',
  });
  const first = useService(() => FIRST, env, { slug });
  const second = useService(() => SECOND, env, { slug: `${slug}-packages-v2` });
  const as = (ip: string, headers: Record<string, string> = {}) => ({
    headers: { 'X-Forwarded-For': ip, ...headers },
  });

  it('have separate rate limits', async () => {
    const client = as('198.51.100.1');
    for (let n = 0; n < POINTS; n++) await first.service.get('/stats', client);
    expectProblem(await first.service.get('/stats', client), 429, 'rate_limited');
    const { status, headers } = await second.service.get('/stats', client);
    expect(status).to.equal(200);
    expect(headers.get('RateLimit')).to.match(new RegExp(`^"reading";r=${POINTS - 1};`));
  });

  it('count wrong secrets separately', async () => {
    const client = as('198.51.101.1');
    const path = `/get-bypass?secret=${BYPASS_SECRET}`;
    for (let n = 0; n < 10; n++) await first.service.get('/get-bypass?secret=wrong', client);
    expectProblem(await first.service.get(path, client), 429, 'rate_limited');
    expectProblem(await second.service.get('/rebuild?secret=wrong', client), 403, 'forbidden');
    expect((await second.service.get(path, client)).status).to.equal(200);
  });

  it('do not share bypass tokens', async () => {
    const { body } = await first.service.get(`/get-bypass?secret=${BYPASS_SECRET}`);
    const client = as('198.51.102.1', { 'X-Bypass-Token': body.bypass_token as string });
    const valid = async ({ service }: SuiteService) =>
      (await service.get('/debug-ip', client)).body.bypass.valid as boolean;
    expect(await valid(first)).to.equal(true);
    expect(await valid(second)).to.equal(false);
  });

  it('name the registry in each metric', async () => {
    const { service } = first;
    const text = await (await fetch(`${service.server.metricsUrl}/metrics`)).text();
    const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const labels = samples.map((line) => /[{,]registry="([^"]*)"/.exec(line)?.[1]);
    expect(samples).to.have.length.greaterThan(50);
    expect(new Set(labels)).to.deep.equal(new Set([service.slug]));
  });

  it('need only the keys and commands of Redis that docs/deployment.md grants to a user', async () => {
    const { dataset } = first;
    const ip = '198.51.103.1';
    const administrator = new Redis(redis().url);
    const [, granted = ''] = /^ACL (SETUSER .*)$/m.exec(readFileSync(GUIDE, 'utf8')) ?? [];
    const rule = granted.replace('~registry:', `~${slug}:`).split(' ');
    await administrator.call('ACL', ...rule);
    const [, name = '', , password = ''] = rule;
    const url = redis().url.replace('//', `//${name}:${password.slice(1)}@`);
    const service = await startService({ ...env(), DATASET_URL: dataset.url, REDIS_URL: url }, slug);
    for (const path of ['/stats', '/debug-ip', '/rebuild?secret=wrong']) await service.get(path, as(ip));
    expect((await service.rebuild('&force=true')).status).to.equal(202);
    const metrics = await scrape(service.server.metricsUrl);
    expect(metrics.sum('redis_connected')).to.equal(1);
    expect(metrics.sum('limit_fallbacks_total')).to.equal(0);
    await service.stop();
    // Redis logs whatever it denies.
    expect(await administrator.call('ACL', 'LOG')).to.deep.equal([]);
    const limits = ['debug', 'reading', 'secrets'].map((policy) => `${slug}:limit:${policy}:${ip}`);
    const keys = await administrator.keys(`${slug}:*`);
    expect(keys).to.include.members(limits);
    expect(keys.filter((key) => !key.includes(':limit:'))).to.deep.equal([]);
    administrator.disconnect();
  });
});
