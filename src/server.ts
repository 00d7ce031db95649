import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { createApp } from './app.js';
import { SnapshotExports } from './search/snapshot-exports.js';
import { createSearchLimiters } from './search/concurrency-limiter.js';
import type { SnapshotWatcher } from './snapshot/snapshot-watcher.js';
import { EXPORT_TIMEOUT_MS } from './snapshot/name-order.js';
import { SearchPool } from './elasticsearch/search-pool.js';
import type { Config } from './config/config.js';
import { ResponseCache } from './read/response-cache.js';
import { HttpServer, SERVER_TIMEOUTS } from './http/server/http-server.js';
import { BypassTokens } from './http/auth/bypass-token.js';
import { connectForLimits, type RateLimitDeps } from './http/limits/rate-limit.js';
import type { Logger } from './util/log.js';
import { createMetricsServer, Metrics } from './metrics/metrics.js';
import { collectors } from './metrics/collectors.js';
import { createRebuildContext, type RebuildContext } from './rebuild/rebuild-context.js';
import type { RebuildService, RebuildServiceOptions } from './rebuild/rebuild-service.js';
import { Registry } from './registry/registry.js';
import { reportWrongVersion } from './elasticsearch/connection-check.js';

/**
 * Deadline of a stop, in milliseconds: process managers usually kill a process ten seconds after SIGTERM.
 * Requests in flight have a second less.
 */
const STOP_MS = 9_000;

export interface RunningServer {
  /** Where the API listens, such as `http://127.0.0.1:3000`. */
  url: string;
  /** Where `/metrics` is served; undefined without METRICS_PORT. */
  metricsUrl: string | undefined;
  snapshots: SnapshotWatcher;
  rebuilds: RebuildService;
  /**
   * Stops accepting requests, waits for those in flight, cleans up a running rebuild, and closes every connection.
   * @returns within nine seconds; false if the stop is not complete by then.
   */
  stop(): Promise<boolean>;
}

interface ServerOptions extends RebuildServiceOptions {
  log: Logger;
}

/**
 * Starts the service: connects, creates the app, starts polling the alias, and listens, even if Elasticsearch is down.
 * @throws errors of `listen` such as EADDRINUSE, after stopping everything.
 */
export async function startServer(config: Config, options: ServerOptions): Promise<RunningServer> {
  const { log } = options;
  const { redisUrl } = config;
  const context = createRebuildContext(config, log);
  const limitsRedis = redisUrl === undefined ? undefined : await connectForLimits(redisUrl, log);
  if (limitsRedis === undefined) log.warn('REDIS_URL is not set: each replica counts requests for itself');
  const stopping = new AbortController();
  const { registry, server, metricsServer, pools } = createServers(context, limitsRedis, options);
  const { snapshots, rebuilds, scheduler } = registry;

  const end = async () => {
    stopping.abort();
    await Promise.all([server.stop(), scheduler.stop(), rebuilds.stop()]);
    snapshots.stop();
    limitsRedis?.disconnect();
    await Promise.all([context.close(), ...pools.map((pool) => pool.close()), metricsServer?.stop()]);
    return true;
  };
  const stop = () => Promise.race([end(), pause(STOP_MS, false, { ref: false })]);
  try {
    // Before listening, so that the first request finds the data.
    await snapshots.start();
    const url = await server.listen(config.port, config.host);
    const metricsUrl = await metricsServer?.listen(config.metricsPort ?? 0, config.host);
    void reportWrongVersion(config.elasticsearch, log, stopping.signal);
    scheduler.start(config.rebuild.intervalSeconds);
    log.info({ url, metricsUrl, alias: snapshots.alias }, 'listening');
    return { url, metricsUrl, snapshots, rebuilds, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Creates the registry, the app, and the servers of the API and of the metrics. The servers do not listen yet. */
function createServers(
  context: RebuildContext,
  redis: Redis | undefined,
  { log, ...rebuilding }: ServerOptions,
) {
  const { config, reader, client } = context;
  const { nodes, apiKey, rebuildApiKey } = config.elasticsearch;
  const { slug } = config.registry;
  const metrics = config.metricsPort === undefined ? undefined : new Metrics(slug);
  const onSearch = metrics?.observeSearch;
  const pool = new SearchPool({ nodes, apiKey }, { onSearch });
  const exportPool = new SearchPool({ nodes, apiKey }, { onSearch, timeoutMs: EXPORT_TIMEOUT_MS });
  const limiters = createSearchLimiters(nodes.length);
  const exports = new SnapshotExports(exportPool, log);
  const registry = new Registry(context, pool, limiters, rebuilding);
  const { snapshots, rebuilds } = registry;
  const cache = new ResponseCache(config.cacheMaxBytes);
  const rateLimits: RateLimitDeps = { redis, slug, log, stats: new Map() };
  const app = createApp({
    config,
    log,
    onResponse: metrics?.observeRequest,
    registry,
    exports,
    cache,
    rateLimits,
    tokens: new BypassTokens(config.bypassSecret, slug),
  });
  const respond = app.callback();
  const server = new HttpServer(
    (request, response) => void respond(request, response),
    config.maxConnections,
    { ...SERVER_TIMEOUTS, keepAlive: 1000 * config.keepAliveSeconds },
  );
  const keys = [
    { name: 'reading', client: reader, apiKey },
    { name: 'rebuilding', client, apiKey: rebuildApiKey },
  ];
  metrics?.register(collectors({ server, limiters, exports, cache, rateLimits, snapshots, rebuilds, keys }));
  return {
    registry,
    server,
    metricsServer: metrics && createMetricsServer(metrics, log),
    pools: [pool, exportPool],
  };
}
