import type { Client } from '@elastic/elasticsearch';
import { expirationOfKey } from '../elasticsearch/api-keys.js';
import { probeWrites } from '../redis/redis.js';
import type { SnapshotExports } from '../search/snapshot-exports.js';
import type { SearchLimiters } from '../search/concurrency-limiter.js';
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
  const { search, similar } = watched.limiters;
  const { redis, slug, stats } = watched.rateLimits;
  return [
    gauge('connections_open', 'Open client connections', () => server.open),
    gauge(
      'connections_max',
      'Maximum number of open connections: MAX_CONNECTIONS',
      () => server.maxConnections,
    ),
    counter(
      'connections_refused_total',
      'Connections closed because MAX_CONNECTIONS were open',
      () => server.refused,
    ),

    gauge('searches_running', 'Searches in flight', () => search.running),
    gauge('searches_waiting', 'Queued searches', () => search.waiting),
    counter('searches_refused_total', 'Searches rejected because the queue was full', () => search.refused),
    gauge('similar_running', 'Look-alike searches in flight', () => similar.running),
    gauge('similar_waiting', 'Queued look-alike searches', () => similar.waiting),
    counter(
      'similar_refused_total',
      'Look-alike searches rejected because the queue was full',
      () => similar.refused,
    ),

    gauge('exports_running', 'Exports that are being sent', () => exports.running),
    counter('exports_refused_total', 'Exports rejected because others were running', () => exports.refused),
    counter(
      'exports_total',
      'Exports that have ended: completed, or cut off because a page could not be read (cut_off)',
      () => exports.outcomes,
      'outcome',
    ),

    counter(
      'cache_requests_total',
      'Cacheable requests: found in the cache (hit), joined to an equal one in flight (shared), created (miss), or unchanged for the client (not_modified)',
      () => cache.counts,
      'outcome',
    ),
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
