import type { Client } from '@elastic/elasticsearch';
import { createReadClient, createRebuildClient } from '../elasticsearch/elasticsearch.js';
import { SearchPool } from '../elasticsearch/search-pool.js';
import type { Config } from '../config/config.js';
import type { Logger } from '../util/log.js';
import { EXPORT_TIMEOUT_MS } from '../snapshot/name-order.js';
import type { PublishContext } from '../publish/publish.js';
import { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { aliasOf } from '../snapshot/index-names.js';
import { RebuildStates } from './state.js';

/** Everything that rebuilds and rollbacks of a registry need, for the server and the commands. */
export interface RebuildContext extends PublishContext {
  config: Config;
  /** Has the rights to read, and short timeouts. */
  reader: Client;
  /** Tracks the snapshots being served. Polls only after `start()`. */
  snapshots: SnapshotWatcher;
  states: RebuildStates;
  close(): Promise<void>;
}

export function createRebuildContext(config: Config, log: Logger): RebuildContext {
  const { nodes, apiKey, rebuildApiKey } = config.elasticsearch;
  const { slug } = config.registry;
  const alias = aliasOf(slug);
  const reader = createReadClient({ nodes, apiKey });
  const client = createRebuildClient({ nodes, apiKey: rebuildApiKey });
  const pool = new SearchPool({ nodes, apiKey: rebuildApiKey });
  const exportPool = new SearchPool({ nodes, apiKey: rebuildApiKey }, { timeoutMs: EXPORT_TIMEOUT_MS });
  const snapshots = new SnapshotWatcher(reader, alias, log);
  const states = new RebuildStates(client, slug);
  const close = async () => {
    await Promise.all([reader, client, pool, exportPool].map((connection) => connection.close()));
  };
  return { config, log, alias, reader, client, pool, exportPool, snapshots, states, close };
}
