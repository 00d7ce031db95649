import type { Client } from '@elastic/elasticsearch';
import { expirationOfKey } from '../elasticsearch/api-keys.js';
import { probeWrites } from '../redis/redis.js';
import type { SnapshotExports } from '../search/snapshot-exports.js';
import type { ConcurrencyLimiter, SearchLimiters } from '../search/concurrency-limiter.js';
import type { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import type { ResponseCache } from '../read/response-cache.js';
import type { HttpServer } from '../http/server/http-server.js';
import type { RateLimitDeps } from '../http/limits/rate-limit.js';
import type { RebuildService } from '../rebuild/rebuild-service.js';
import { counter, gauge, type Collector, type Sample } from './metrics.js';
import { ofRebuilds, ofSnapshot } from './snapshot-collectors.js';

export interface Watched {
  server: HttpServer;
  limiters: SearchLimiters;
  exports: SnapshotExports;
  cache: ResponseCache;
  rateLimits: Pick<RateLimitDeps, 'redis' | 'slug' | 'stats'>;
  snapshots: SnapshotWatcher;
  rebuilds: RebuildService;
  /** The API keys, each with a client that uses it. */
  keys: readonly { name: string; client: Client; apiKey: string | undefined }[];
}

export function collectors(watched: Watched): Collector[] {
  const { server, exports, cache, snapshots, rebuilds, keys } = watched;
  const { redis, slug, stats } = watched.rateLimits;
  return [
    gauge('connections_open', 'Open client connections', () => server.open),
    gauge('connections_max', 'MAX_CONNECTIONS', () => server.maxConnections),
    counter('connections_refused_total', 'Connections over MAX_CONNECTIONS', () => server.refused),

    ...ofLimiter('searches', 'Searches', watched.limiters.search),
    ...ofLimiter('similar', 'Look-alike searches', watched.limiters.similar),

    gauge('exports_running', 'Exports that are being sent', () => exports.running),
    counter('exports_refused_total', 'Exports rejected because others were running', () => exports.refused),
    counter('exports_total', 'Ended exports; cut_off: one failed', () => exports.outcomes, 'outcome'),

    counter('cache_requests_total', 'Cacheable requests', () => cache.counts, 'outcome'),
    gauge('cache_bytes', 'Memory of the cached responses', () => cache.bytes),
    gauge('cache_max_bytes', 'Maximum memory of the cached responses: CACHE_MAX_BYTES', () => cache.maxBytes),

    counter(
      'limit_requests_total',
      'Requests to which a rate limit applies, by outcome',
      () =>
        [...stats].flatMap(([policy, { outcomes }]) =>
          Object.entries(outcomes).map(([outcome, n]): Sample => [n, policy, outcome]),
        ),
      'policy',
      'outcome',
    ),
    counter(
      'limit_fallbacks_total',
      'Rate-limit checks that this process counted because Redis failed or timed out',
      () => [...stats].map(([policy, { fallbacks }]): Sample => [fallbacks, policy]),
      'policy',
    ),
    gauge(
      'redis_connected',
      '1 while Redis is connected and accepts writes; absent if none is configured',
      () =>
        redis &&
        probeWrites(redis, slug).then(
          () => 1,
          () => 0,
        ),
    ),

    ...ofSnapshot(snapshots),
    ...ofRebuilds(rebuilds),
    ofKeys(keys),
  ];
}

function ofLimiter(prefix: string, what: string, limiter: ConcurrencyLimiter): Collector[] {
  return [
    gauge(`${prefix}_running`, `${what} in flight`, () => limiter.running),
    gauge(`${prefix}_waiting`, `${what} in the queue`, () => limiter.waiting),
    counter(`${prefix}_refused_total`, `${what} rejected by a full queue`, () => limiter.refused),
  ];
}

function ofKeys(keys: Watched['keys']): Collector {
  const read = async () => {
    const samples = keys.map(async ({ name, client, apiKey }): Promise<Sample[]> => {
      const expiration = await expirationOfKey(client, apiKey);
      return expiration === undefined ? [] : [[expiration / 1000, name]];
    });
    return (await Promise.all(samples)).flat();
  };
  return gauge(
    'api_key_expiration_timestamp_seconds',
    'When an API key of the service expires; absent if it does not, or Elasticsearch does not say',
    read,
    'key',
  );
}
