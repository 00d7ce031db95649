import type { SearchLimiters } from '../search/catalog.js';
import { ENGINE_STATES, type GenerationWatcher } from '../search/generation-watcher.js';
import type { ResponseCache } from '../http/response-cache.js';
import type { ConnectionLimits } from '../http/connection-limits.js';
import type { RateLimiterDeps } from '../http/rate-limit/failover-limiter.js';
import { CHANGES } from '../search/change-record.js';
import { builtAt } from '../search/index-names.js';
import { PHASES } from '../rebuild/progress.js';
import type { RebuildService } from '../rebuild/rebuild-service.js';
import type { Collector, Sample } from './metrics.js';

/** A reason of a failure is a label: long enough to tell what it was. */
const REASON_LENGTH = 200;

interface Watched {
  connections: ConnectionLimits;
  limiters: SearchLimiters;
  cache: ResponseCache;
  rateLimiter: Pick<RateLimiterDeps, 'redis' | 'stats'>;
  generations: GenerationWatcher;
  rebuilds: RebuildService;
}

/** What the parts of the service have counted, and the state that they are in. */
export function collectors({
  connections,
  limiters,
  cache,
  rateLimiter,
  generations,
  rebuilds,
}: Watched): Collector[] {
  return [
    ...ofConnections(connections),
    ...ofSearches(limiters),
    ...ofCache(cache),
    ...ofLimits(rateLimiter),
    ...ofGeneration(generations),
    ...ofRebuilds(rebuilds),
  ];
}

function ofConnections(connections: ConnectionLimits): Collector[] {
  return [
    gauge('connections_open', 'Connections of clients', () => connections.open),
    gauge('connections_max', 'Connections that may be open: MAX_CONNECTIONS', () => connections.max),
    counter(
      'connections_closed_total',
      'Connections closed by the service: the client did not read its responses (unread), or all were taken and it was the least useful one (evicted) or none could be closed for it (refused)',
      ['reason'],
      () => tally(connections.closed),
    ),
  ];
}

function ofSearches({ search, similar }: SearchLimiters): Collector[] {
  return [
    gauge('searches_running', 'Searches that Elasticsearch works at', () => search.running),
    gauge('searches_waiting', 'Searches that wait for their turn', () => search.waiting),
    counter('searches_refused_total', 'Searches refused because too many waited', [], () => [
      [search.refused],
    ]),
    gauge('similar_running', 'Searches for look-alikes that Elasticsearch works at', () => similar.running),
    gauge('similar_waiting', 'Searches for look-alikes that wait for their turn', () => similar.waiting),
    counter('similar_refused_total', 'Searches for look-alikes refused because too many waited', [], () => [
      [similar.refused],
    ]),
  ];
}

function ofCache(cache: ResponseCache): Collector[] {
  return [
    counter(
      'cache_requests_total',
      'Requests for what can be cached: kept (hit), joined to an equal one under way (shared), made (miss), or known to the client (not_modified)',
      ['outcome'],
      () => tally(cache.counts),
    ),
    gauge('cache_bytes', 'Memory of the answers that are kept', () => cache.bytes),
    gauge('cache_max_bytes', 'Memory that they may take: CACHE_MAX_BYTES', () => cache.maxBytes),
  ];
}

function ofLimits({ redis, stats }: Watched['rateLimiter']): Collector[] {
  return [
    counter(
      'limit_requests_total',
      'Requests that a budget applies to, by what became of them',
      ['budget', 'outcome'],
      () =>
        [...stats].flatMap(([budget, { outcomes }]) =>
          tally(outcomes).map(([n, outcome = '']): Sample => [n, budget, outcome]),
        ),
    ),
    counter(
      'limit_fallbacks_total',
      'Trips to Redis that failed or took too long, so that this process counted for itself',
      ['budget'],
      () => [...stats].map(([budget, { fallbacks }]) => [fallbacks, budget]),
    ),
    gauge(
      'redis_connected',
      '1 while Redis is connected; absent where none is configured',
      () => redis && (redis.status === 'ready' ? 1 : 0),
    ),
  ];
}

function ofGeneration(generations: GenerationWatcher): Collector[] {
  return [
    state(
      'engine_state',
      'Elasticsearch and its complete index, as last seen',
      'state',
      ENGINE_STATES,
      () => generations.engine,
    ),
    gauge(
      'generation_packages',
      'Packages of the snapshot that is served',
      () => generations.current?.meta.total,
    ),
    gauge('generation_taken_timestamp_seconds', 'When the snapshot that is served was taken', () =>
      toSeconds(generations.current?.meta.taken_at),
    ),
    gauge('generation_built_timestamp_seconds', 'When the index that is served was created', () =>
      toSeconds(generations.current && builtAt(generations.current.index)),
    ),
    {
      type: 'gauge',
      name: 'generation_changes',
      help: 'Packages that differ from the snapshot before; absent if it was not compared with one',
      labels: ['change'],
      read: () => {
        const lineage = generations.current?.meta.lineage;
        if (lineage === undefined || lineage.ancestors.length === 0) return [];
        return CHANGES.map((change): Sample => [lineage[change], change]);
      },
    },
    gauge(
      'changes_snapshots',
      'Snapshots that /changes can start from',
      () => generations.current?.meta.lineage?.ancestors.length,
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
    gauge('rebuild_rows', 'Rows that it has read or written so far', () => rebuilds.progress?.rows),
    gauge(
      'rebuild_rows_expected',
      'Rows that there will be, once that is known',
      () => rebuilds.progress?.total,
    ),
    gauge(
      'rebuild_bytes',
      'Bytes that it has merged or copied so far, in these phases',
      () => rebuilds.progress?.bytes,
    ),
    gauge(
      'rebuild_bytes_expected',
      'Bytes that it will merge or copy, roughly',
      () => rebuilds.progress?.totalBytes,
    ),
    gauge(
      'rebuild_memory_bytes',
      'Resident memory of the process that rebuilds',
      () => rebuilds.usage?.memoryBytes,
    ),
    gauge('rebuild_cpu_seconds', 'Processor time that it has used so far', () => rebuilds.usage?.cpuSeconds),
    counter('rebuilds_total', 'Rebuilds of this process, by how they ended', ['outcome'], () =>
      tally(rebuilds.counts),
    ),
    gauge(
      'rebuild_duration_seconds',
      'How long the last rebuild of this process took that built an index',
      () => rebuilds.lastSuccess?.seconds,
    ),
    gauge(
      'rebuild_last_success_timestamp_seconds',
      'When the last rebuild of this process ended well, be it that nothing had changed',
      () => toSeconds(rebuilds.lastSuccess?.at),
    ),
    {
      type: 'gauge',
      name: 'rebuild_last_failure_timestamp_seconds',
      help: 'When the last rebuild of this process failed, and why; absent after one that did not',
      labels: ['reason'],
      read: () => {
        const { lastFailure } = rebuilds;
        if (lastFailure === undefined) return [];
        return [[toSeconds(lastFailure.at), lastFailure.reason.slice(0, REASON_LENGTH)]];
      },
    },
  ];
}

function counter(name: string, help: string, labels: string[], read: () => Sample[]): Collector {
  return { type: 'counter', name, help, labels, read };
}

function gauge(name: string, help: string, read: () => number | undefined): Collector {
  return {
    type: 'gauge',
    name,
    help,
    read: () => {
      const value = read();
      return value === undefined ? [] : [[value]];
    },
  };
}

/** 1 for the state that holds, and 0 for each other one. */
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

/** Since the epoch, of an ISO 8601 time, if there is one. */
function toSeconds(time: string): number;
function toSeconds(time: string | undefined): number | undefined;
function toSeconds(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time) / 1000;
}
