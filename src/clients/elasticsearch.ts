import { Client } from '@elastic/elasticsearch';

/** Where Elasticsearch is, and the key to it. */
export interface ElasticsearchAccess {
  nodes: readonly string[];
  apiKey: string | undefined;
}

/** A reading request that took longer than this has failed, in milliseconds; the promise is an error within two seconds. */
const READ_TIMEOUT_MS = 1500;

/**
 * For the requests of users: short time-out, one retry on another connection. A retry never follows a time-out, so the
 * answer, or its failure, is there within `READ_TIMEOUT_MS`.
 */
export function createReadClient(settings: ElasticsearchAccess): Client {
  return createClient(settings, READ_TIMEOUT_MS, 1);
}

/** For a rebuild: patient, since merging and recovery take minutes on a large index. */
export function createRebuildClient(settings: ElasticsearchAccess): Client {
  return createClient(settings, 600_000, 5);
}

function createClient(
  { nodes, apiKey }: ElasticsearchAccess,
  requestTimeout: number,
  maxRetries: number,
): Client {
  return new Client({
    nodes: [...nodes],
    ...(apiKey === undefined ? {} : { auth: { apiKey } }),
    requestTimeout,
    maxRetries,
    enableMetaHeader: false,
  });
}
