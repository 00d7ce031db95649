import type { Client } from '@elastic/elasticsearch';
import { createReadClient, createRebuildClient } from '../elasticsearch/elasticsearch.js';
import { SearchPool } from '../elasticsearch/search-pool.js';
import type { Config } from '../config/config.js';
import type { Logger } from '../util/log.js';
import { EXPORT_TIMEOUT_MS } from '../snapshot/name-order.js';
import { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { aliasOf } from '../snapshot/index-names.js';
import { RebuildStates } from './state.js';

/** The connections of a process to Elasticsearch. All registries of the process share them. */
export interface Connections {
  /** Has the rights to read, and short timeouts. */
  reader: Client;
  /** Has the rights to rebuild. */
  client: Client;
  /** Has the rights to rebuild, like `client`. Searches the new index. */
  pool: SearchPool;
  /** Has the rights to rebuild, and a longer timeout than `pool`. Reads whole snapshots. */
  exportPool: SearchPool;
  close(): Promise<void>;
}

/** Everything that rebuilds and rollbacks of a registry need, for the server and the commands. */
export interface RebuildContext extends Connections {
  config: Config;
  log: Logger;
  alias: string;
  /** Tracks the snapshots being served. Polls only after `start()`. */
  snapshots: SnapshotWatcher;
  states: RebuildStates;
}

export function connect(config: Config): Connections {
  const { nodes, apiKey, rebuildApiKey } = config.elasticsearch;
  const reader = createReadClient({ nodes, apiKey });
  const client = createRebuildClient({ nodes, apiKey: rebuildApiKey });
  const pool = new SearchPool({ nodes, apiKey: rebuildApiKey });
  const exportPool = new SearchPool({ nodes, apiKey: rebuildApiKey }, { timeoutMs: EXPORT_TIMEOUT_MS });
  const close = async () => {
    await Promise.all([reader, client, pool, exportPool].map((connection) => connection.close()));
  };
  return { reader, client, pool, exportPool, close };
}

/** Adds the objects of one registry to connections. Closing the result closes the connections. */
export function rebuildContextOf(connections: Connections, config: Config, log: Logger): RebuildContext {
  const { reader, client } = connections;
  const { slug } = config.registry;
  const alias = aliasOf(slug);
  return {
    ...connections,
    config,
    log,
    alias,
    snapshots: new SnapshotWatcher(reader, alias, log),
    states: new RebuildStates(client, slug),
  };
}

/** Creates a context with its own connections, for a command. */
export function createRebuildContext(config: Config, log: Logger): RebuildContext {
  return rebuildContextOf(connect(config), config, log);
}
