import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { parse } from 'yaml';
import { RateLimit } from '../../src/http/limits/rate-limit.js';
import { createLogger } from '../../src/util/log.js';
import { useOwnEngine } from '../support/engines.js';

const COMPOSE = new URL('../../docker-compose.yml', import.meta.url);

/** How long an active client sends requests during the flood, in milliseconds. */
const FLOOD_MS = 2000;

/** Rate-limit window, in seconds. */
const WINDOW_SECONDS = 60;

/** New clients per call; each sends one request. */
const BATCH = 1000;

/** Counts these requests as the limiter does, in Redis itself, because half a million of them fit into its memory. */
const COUNT_REQUESTS = `
  for i = ARGV[1], ARGV[1] + ARGV[2] - 1 do
    local key = string.format('registry:limit:reading:2001:db8:%x::/64', i)
    redis.call('SET', key, 0, 'EX', ARGV[3], 'NX')
    redis.call('INCRBY', key, 1)
    redis.call('PTTL', key)
  end`;

/** Converts a size such as `128m` or `64mb` to bytes. */
function bytesOf(size: string): number {
  const [, number = '', unit = ''] = /^(\d+)([km]?)b?$/.exec(size) ?? [];
  return Number(number) * { '': 1, k: 2 ** 10, m: 2 ** 20 }[unit as '' | 'k' | 'm'];
}

/** Redis in the file: its command-line options, and the memory of its container in bytes. */
function composed(): { options: Record<string, string>; memoryBytes: number } {
  const { services } = parse(readFileSync(COMPOSE, 'utf8'), { merge: true }) as {
    services: { redis: { command: string[]; mem_limit: string } };
  };
  const [program, ...rest] = services.redis.command;
  expect(program).to.equal('redis-server');
  const pairs = rest.flatMap((name, i) => (i % 2 === 0 ? [[name.replace('--', ''), rest[i + 1] ?? '']] : []));
  return {
    options: Object.fromEntries(pairs) as Record<string, string>,
    memoryBytes: bytesOf(services.redis.mem_limit),
  };
}

describe('The Redis of docker-compose.yml, with more clients than fit into its memory,', function () {
  this.timeout(120_000);
  const { options, memoryBytes } = composed();
  const log = createLogger('silent');
  const engine = useOwnEngine('redis');
  let redis: Redis;
  let service: Redis;
  let isFlooded = true;
  let flood: Promise<void> | undefined;
  /** Errors of rejected writes. */
  const refused: string[] = [];
  let clients = 0;

  /** Counts one request per new client until `isEnough`. */
  async function flooding(isEnough: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await isEnough()) && refused.length === 0) {
      const counting = redis.eval(COUNT_REQUESTS, 0, clients, BATCH, WINDOW_SECONDS);
      await counting.catch((error: unknown) => refused.push((error as Error).message));
      clients += BATCH;
    }
  }

  async function info(section: string, name: string): Promise<number> {
    const [, value] = new RegExp(`^${name}:(\\d+)`, 'm').exec(await redis.info(section)) ?? [];
    return Number(value);
  }

  beforeEach(async () => {
    redis = new Redis(engine().url);
    for (const [name, value] of Object.entries(options)) await redis.config('SET', name, value);
    service = new Redis(engine().url);
  });
  afterEach(async () => {
    isFlooded = false;
    await flood;
    for (const client of [redis, service]) client.disconnect();
  });

  it('has a memory limit that fits into its container', () => {
    expect(bytesOf(options['maxmemory'] ?? '0')).to.be.within(16 * 2 ** 20, memoryBytes / 2);
  });

  it('evicts only idle clients', async () => {
    await flooding(async () => (await info('stats', 'evicted_keys')) > 0);
    flood = flooding(() => !isFlooded);
    const evictedBefore = await info('stats', 'evicted_keys');
    await countWhileFlooded();
    const evicted = (await info('stats', 'evicted_keys')) - evictedBefore;
    expect(evicted, 'evicted while the client was active').to.be.greaterThan(100);
    expect(refused.slice(0, 1), 'refused').to.deep.equal([]);
  });

  /** Sends requests of an active client, whose points must stay. */
  async function countWhileFlooded(): Promise<void> {
    const policy = { name: 'reading', points: 1000, windowSeconds: WINDOW_SECONDS };
    // `service` has no timeout: this test does not measure the latency of a flooded Redis.
    const limit = new RateLimit(policy, { redis: service, slug: 'registry', log, stats: new Map() });
    const end = performance.now() + FLOOD_MS;
    for (let counted = 1; performance.now() < end; counted++) {
      const { consumedPoints } = await limit.consume('198.51.100.1', 1);
      expect(consumedPoints, 'an active client').to.equal(counted);
      expect(limit.stats.fallbacks).to.equal(0);
      expect(await info('memory', 'used_memory_rss')).to.be.lessThan(memoryBytes);
      await pause(200);
    }
  }
});
