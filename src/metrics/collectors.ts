import type { Client } from '@elastic/elasticsearch';
import { expirationOfKey } from '../clients/api-keys.js';
import { probeWrites } from '../clients/redis.js';
import type { SearchLimiters } from '../search/search-runner.js';
import { SNAPSHOT_STATES, type SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import type { ResponseCache } from '../http/response/response-cache.js';
import type { Connections } from '../http/server/connections.js';
import type { RateLimiterDeps } from '../http/limits/failover-limiter.js';
import { CHANGES } from '../snapshot/change-record.js';
import { changeCounts } from '../snapshot/snapshot.js';
import { builtAt } from '../snapshot/index-names.js';
import { PHASES } from '../rebuild/process/progress.js';
import type { RebuildService } from '../rebuild/process/rebuild-service.js';
import type { Collector, Sample } from './metrics.js';

/** What the metrics are read from. */
export interface Watched {
  connections: Connections;
  limiters: SearchLimiters;
  cache: ResponseCache;
  rateLimiter: Pick<RateLimiterDeps, 'redis' | 'slug' | 'stats'>;
  snapshots: SnapshotWatcher;
  rebuilds: RebuildService;
  /** The API keys, each with a client that uses it. */
  keys: readonly { name: string; client: Client; apiKey: string | undefined }[];
}

/** The collectors of all counters and states of the service. */
export function collectors({
  connections,
  limiters,
  cache,
  rateLimiter,
  snapshots,
  rebuilds,
  keys,
}: Watched): Collector[] {
  return [
    ...ofConnections(connections),
    ...ofSearches(limiters),
    ...ofCache(cache),
    ...ofLimits(rateLimiter),
    ...ofSnapshot(snapshots),
    ...ofRebuilds(rebuilds),
    ofKeys(keys),
  ];
}

function ofConnections(connections: Connections): Collector[] {
  return [
    gauge('connections_open', 'Open client connections', () => connections.open),
    gauge('connections_max', 'Maximum number of open connections: MAX_CONNECTIONS', () => connections.max),
    counter(
      'connections_closed_total',
      'Connections closed by the service: the client did not read its responses (unread), it was idle the longest at the limit (evicted), or all others had requests in flight (refused)',
      ['reason'],
      () => tally(connections.closed),
    ),
  ];
}

function ofSearches({ search, similar }: SearchLimiters): Collector[] {
  return [
    gauge('searches_running', 'Searches in flight', () => search.running),
    gauge('searches_waiting', 'Queued searches', () => search.waiting),
    counter('searches_refused_total', 'Searches rejected because the queue was full', [], () => [
      [search.refused],
    ]),
    gauge('similar_running', 'Look-alike searches in flight', () => similar.running),
    gauge('similar_waiting', 'Queued look-alike searches', () => similar.waiting),
    counter('similar_refused_total', 'Look-alike searches rejected because the queue was full', [], () => [
      [similar.refused],
    ]),
  ];
}

function ofCache(cache: ResponseCache): Collector[] {
  return [
    counter(
      'cache_requests_total',
      'Cacheable requests: found in the cache (hit), joined to an equal one in flight (shared), created (miss), or unchanged for the client (not_modified)',
      ['outcome'],
      () => tally(cache.counts),
    ),
    gauge('cache_bytes', 'Memory of the cached responses', () => cache.bytes),
    gauge('cache_max_bytes', 'Maximum memory of the cached responses: CACHE_MAX_BYTES', () => cache.maxBytes),
  ];
}

function ofLimits({ redis, slug, stats }: Watched['rateLimiter']): Collector[] {
  return [
    counter(
      'limit_requests_total',
      'Requests to which a rate limit applies, by outcome',
      ['budget', 'outcome'],
      () =>
        [...stats].flatMap(([budget, { outcomes }]) =>
          tally(outcomes).map(([n, outcome = '']): Sample => [n, budget, outcome]),
        ),
    ),
    counter(
      'limit_fallbacks_total',
      'Rate-limit checks that this process counted because Redis failed or timed out',
      ['budget'],
      () => [...stats].map(([budget, { fallbacks }]) => [fallbacks, budget]),
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
  ];
}

function ofSnapshot(snapshots: SnapshotWatcher): Collector[] {
  return [
    state(
      'engine_state',
      'State of Elasticsearch and its index at the last poll',
      'state',
      SNAPSHOT_STATES,
      () => snapshots.state,
    ),
    gauge(
      'generation_packages',
      'Packages of the snapshot that is served',
      () => snapshots.current?.meta.total,
    ),
    gauge('generation_taken_timestamp_seconds', 'When the snapshot that is served was taken', () =>
      toSeconds(snapshots.current?.meta.taken_at),
    ),
    gauge('generation_built_timestamp_seconds', 'When the index that is served was created', () =>
      toSeconds(snapshots.current && builtAt(snapshots.current.index)),
    ),
    {
      type: 'gauge',
      name: 'generation_changes',
      help: 'Packages that differ from the previous snapshot; absent if it was not compared with one',
      labels: ['change'],
      read: () => {
        const counts = snapshots.current && changeCounts(snapshots.current.meta);
        return counts === undefined ? [] : CHANGES.map((change): Sample => [counts[change], change]);
      },
    },
    gauge(
      'changes_snapshots',
      'Snapshots that /changes can start from',
      () => snapshots.current?.meta.lineage?.ancestors.length,
    ),
  ];
}

function ofRebuilds(rebuilds: RebuildService): Collector[] {
  return [
    state(
      'rebuild_phase',
      'Phase of the rebuild that this process runs',
      'phase',
      PHASES,
      () => rebuilds.progress?.phase,
    ),
    gauge('rebuild_rows', 'Rows read or written by the running rebuild', () => rebuilds.progress?.rows),
    gauge(
      'rebuild_rows_expected',
      'Expected rows of the running rebuild, once known',
      () => rebuilds.progress?.total,
    ),
    gauge('rebuild_bytes', 'Bytes merged or copied by the running rebuild', () => rebuilds.progress?.bytes),
    gauge(
      'rebuild_bytes_expected',
      'Approximate bytes to merge or copy',
      () => rebuilds.progress?.totalBytes,
    ),
    gauge(
      'rebuild_memory_bytes',
      'Resident memory of the rebuild process',
      () => rebuilds.usage?.memoryBytes,
    ),
    gauge('rebuild_cpu_seconds', 'CPU time of the rebuild process so far', () => rebuilds.usage?.cpuSeconds),
    counter('rebuilds_total', 'Rebuilds of this process, by outcome', ['outcome'], () =>
      tally(rebuilds.counts),
    ),
    gauge(
      'rebuild_duration_seconds',
      'Duration of the last rebuild of this process that built an index',
      () => rebuilds.lastSuccess?.seconds,
    ),
    {
      type: 'gauge',
      name: 'rebuild_last_success_timestamp_seconds',
      help: 'When a rebuild of any replica or command last succeeded, with or without changes',
      read: async () => {
        const { succeededAt } = await rebuilds.lastOutcome();
        return succeededAt === undefined ? [] : [[toSeconds(succeededAt)]];
      },
    },
    {
      type: 'gauge',
      name: 'rebuild_last_failure_timestamp_seconds',
      help: 'When the last rebuild of any replica or command failed, and the kind of its reason; absent after a success',
      labels: ['reason'],
      read: async () => {
        const { failure } = await rebuilds.lastOutcome();
        return failure === undefined ? [] : [[toSeconds(failure.at), failure.kind ?? 'other']];
      },
    },
  ];
}

function ofKeys(keys: Watched['keys']): Collector {
  return {
    type: 'gauge',
    name: 'api_key_expiration_timestamp_seconds',
    help: 'When an API key of the service expires; absent if it does not, or Elasticsearch does not say',
    labels: ['key'],
    read: async () => {
      const samples = keys.map(async ({ name, client, apiKey }): Promise<Sample[]> => {
        const expiration = await expirationOfKey(client, apiKey);
        return expiration === undefined ? [] : [[expiration / 1000, name]];
      });
      return (await Promise.all(samples)).flat();
    },
  };
}

function counter(name: string, help: string, labels: string[], read: () => Sample[]): Collector {
  return { type: 'counter', name, help, labels, read };
}

function gauge(name: string, help: string, read: () => number | undefined | Promise<number>): Collector {
  return {
    type: 'gauge',
    name,
    help,
    read: async () => {
      const value = await read();
      return value === undefined ? [] : [[value]];
    },
  };
}

/** 1 for the current state, and 0 for all others. */
function state<State extends string>(
  name: string,
  help: string,
  label: string,
  states: readonly State[],
  read: () => State | undefined,
): Collector {
  return {
    type: 'gauge',
    name,
    help,
    labels: [label],
    read: () => {
      const current = read();
      return states.map((one) => [one === current ? 1 : 0, one]);
    },
  };
}

function tally(counts: object): Sample[] {
  return Object.entries(counts).map(([outcome, n]: [string, number]) => [n, outcome]);
}

/** Converts an ISO 8601 time to seconds since the epoch. */
function toSeconds(time: string): number;
function toSeconds(time: string | undefined): number | undefined;
function toSeconds(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time) / 1000;
}
