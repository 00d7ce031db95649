import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { RateLimitPolicy, RateLimitState } from './windows.js';

/** Timeout of one command, in milliseconds. */
export const REDIS_TIMEOUT_MS = 50;

/**
 * For each key, executes `count` checks of `points` points each. A check passes, and its points are added, if they fit
 * into the limit. A check of 0 points passes if the client has points left. A counter that is missing or not a number
 * begins a new window at 0. A counter without a time to live keeps its points and gets a whole window. Returns for each
 * key the number of checks that passed, the points used before these checks, and the milliseconds until the window
 * ends.
 */
const TAKE_POINTS = `
local seconds, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local replies = {}
for i, key in ipairs(KEYS) do
  local points, count = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
  local used, left = tonumber(redis.pcall('GET', key)), redis.call('PTTL', key)
  if not used or left < 0 then
    used, left = used or 0, 1000 * seconds
    redis.call('SET', key, used, 'EX', seconds)
  end
  local fitting = used < limit and count or 0
  if points > 0 then fitting = math.max(0, math.min(count, math.floor((limit - used) / points))) end
  if fitting * points > 0 then redis.call('INCRBY', key, fitting * points) end
  replies[3 * i - 2], replies[3 * i - 1], replies[3 * i] = fitting, used, left
end
return replies`;

/** Redis did not respond in time. It may execute the command later. */
export class RedisTimeoutError extends Error {}

/** Checks of one client with the same number of points, and their reply. */
interface EqualChecks {
  client: string;
  points: number;
  count: number;
  reply: readonly number[];
}

/** Windows of all clients on Redis, which all replicas share. */
export class RedisWindows {
  /** The checks that arrive within two iterations of the event loop. They share one command. */
  #batch: { checks: Map<string, EqualChecks>; executed: Promise<void> } | undefined;

  constructor(
    private readonly redis: Redis,
    private readonly slug: string,
    private readonly policy: RateLimitPolicy,
    private readonly timeoutMs = REDIS_TIMEOUT_MS,
  ) {}

  /**
   * Adds points to the window of a client if they fit into the limit. A check of 0 points passes if the client has
   * points left. Concurrent checks share one command. A command for each check would take two thirds of the processor
   * time of a cached response.
   * @throws {RedisTimeoutError}
   * @throws {Error} of Redis, or of ioredis if there is no connection.
   */
  async take(client: string, points: number): Promise<RateLimitState> {
    const { checks, executed } = (this.#batch ??= this.#newBatch());
    const key = points === 1 ? client : `${points} ${client}`;
    const equal = checks.get(key) ?? { client, points, count: 0, reply: [] };
    checks.set(key, equal);
    const n = ++equal.count;
    await executed;
    const [fitting = 0, before = 0, msLeft = 0] = equal.reply;
    return { allowed: n <= fitting, used: before + points * Math.min(n, fitting), msLeft };
  }

  #newBatch() {
    const checks = new Map<string, EqualChecks>();
    // Checks of 0 points (correct secrets) come last. Otherwise a correct secret could pass before the wrong secrets of
    // the same batch are counted.
    const inOrder = () => [...checks.values()].sort((one, other) => other.points - one.points);
    // Waits for two iterations, because the first often reads only a few of the arriving requests.
    const collected = nextIteration().then(() => nextIteration());
    return { checks, executed: collected.then(() => this.#execute(inOrder())) };
  }

  async #execute(checks: readonly EqualChecks[]): Promise<void> {
    this.#batch = undefined;
    const { name, windowSeconds, points: limit } = this.policy;
    const keys = checks.map(({ client }) => `${this.slug}:limit:${name}:${client}`);
    const args = checks.flatMap(({ points, count }) => [points, count]);
    const command = this.redis.eval(TAKE_POINTS, keys.length, ...keys, windowSeconds, limit, ...args);
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_resolve, reject) => {
      const expire = () => reject(new RedisTimeoutError('Redis did not respond in time'));
      // `setImmediate` lets Node read data that has already arrived. The response may have arrived in time while this
      // process was suspended or too busy to read it.
      timer = setTimeout(() => setImmediate(expire), this.timeoutMs);
    });
    const replies = (await Promise.race([command, timeout]).finally(() => clearTimeout(timer))) as number[];
    for (const [i, equal] of checks.entries()) equal.reply = replies.slice(3 * i, 3 * i + 3);
  }
}
