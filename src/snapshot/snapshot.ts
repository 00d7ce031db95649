import { errors, type Client, type estypes, type TransportRequestOptions } from '@elastic/elasticsearch';
import { errorIn } from '../elasticsearch/elasticsearch.js';
import { ElasticsearchUnavailableError, isRetryable } from '../elasticsearch/elasticsearch-errors.js';
import { builtAt, snapshotIdOf } from './index-names.js';
import { snapshotMeta, type SnapshotMeta } from './snapshot-meta.js';

/** A complete list of packages, in an index that never changes again. */
export interface Snapshot {
  index: string;
  /** The snapshot's id, for clients. */
  id: string;
  shards: number;
  meta: SnapshotMeta;
}

/** The snapshot lacks a field that the request needs: an earlier release built it. The next rebuild adds the field. */
export class EarlierMappingError extends Error {
  override readonly name = 'EarlierMappingError';
}

/** @throws {EarlierMappingError} if a snapshot was built before this version of the mapping. */
export function assertMapping({ index, meta }: Snapshot, version: number): void {
  if (meta.mapping_version < version) throw new EarlierMappingError(index);
}

/** The alias points to several indices, or an index has the alias's name. Only an operator can correct this. */
export class AmbiguousAliasError extends ElasticsearchUnavailableError {}

/** The index an alias points to, whether or not this version can serve it. */
export interface FoundIndex extends Omit<Snapshot, 'meta'> {
  /** Undefined if `_meta` was written by another version, or not by this service. */
  meta: SnapshotMeta | undefined;
  /** When the index was created, in milliseconds since the epoch. */
  createdAt: number;
  /** Whether an operator closed the index: it cannot be searched. */
  closed: boolean;
  /** The block (see `BLOCKS`) that prevents changes of the index's aliases, if any. */
  block: string | undefined;
}

/**
 * The index an alias points to, or undefined if there is none.
 * @throws {ElasticsearchUnavailableError} if Elasticsearch does not respond, or its response is incomplete.
 * @throws {AmbiguousAliasError} if the alias points to more than one index, or an index has the alias's name.
 */
export async function findIndex(
  client: Client,
  alias: string,
  options: Pick<TransportRequestOptions, 'signal'> = {},
): Promise<FoundIndex | undefined> {
  // Retried without a pause, because users wait: the client's backoff of up to two seconds would take too long.
  const found = await client.indices
    .get(metadataRequest(alias), { retryBackoff: () => 0, ...options })
    .catch(undefinedIfAbsent);
  if (found === undefined) return undefined;
  // Elasticsearch reports an absent alias as an error, so a response without an index is incomplete. A proxy may have
  // changed it.
  if (!isComplete(found))
    throw new ElasticsearchUnavailableError('the response of Elasticsearch is not complete');
  const [index = '', ...others] = Object.keys(found).sort().reverse();
  if (others.length > 0) {
    const cause = new Error([index, ...others].join(', '));
    throw new AmbiguousAliasError(`the alias ${alias} points to more than one index: leave one`, { cause });
  }
  // Callers may also pass the name of a snapshot index.
  if (index === alias && builtAt(index) === undefined) {
    throw new AmbiguousAliasError(`an index has the name of the alias ${alias}: rename or delete it`);
  }
  const { mappings, settings } = found[index] ?? {};
  return {
    index,
    id: snapshotIdOf(index),
    shards: Number(settings?.index?.number_of_shards),
    meta: snapshotMeta.safeParse(mappings?._meta).data,
    createdAt: Number(settings?.index?.creation_date),
    closed: String(settings?.index?.verified_before_close) === 'true',
    block: BLOCKS.find((name) => String(settings?.index?.blocks?.[name]) === 'true'),
  };
}

/**
 * Index blocks that prevent changes of metadata, including aliases. Elasticsearch sets `read_only_allow_delete` if the
 * disk is full.
 */
const BLOCKS = ['read_only', 'read_only_allow_delete', 'metadata'] as const;

/** Requests only the fields that a snapshot needs, because every replica polls every second. */
function metadataRequest(alias: string): estypes.IndicesGetRequest {
  return {
    index: alias,
    features: ['mappings', 'settings'],
    filter_path: [
      '*.mappings._meta',
      ...['number_of_shards', 'creation_date', 'verified_before_close', 'blocks'].map(
        (name) => `*.settings.index.${name}`,
      ),
      'error',
      'status',
    ],
  };
}

/**
 * @returns undefined if the error says that there is no such index or alias.
 * @throws {ElasticsearchUnavailableError} if the request may succeed later.
 * @throws the given error otherwise.
 */
function undefinedIfAbsent(error: unknown): undefined {
  if (error instanceof errors.ResponseError && !isRetryable(error.statusCode ?? 500)) {
    if (errorIn(error).type === 'index_not_found_exception') return;
    throw error;
  }
  if (!(error instanceof errors.ElasticsearchClientError)) throw error;
  throw new ElasticsearchUnavailableError(error.message, { cause: error });
}

/** Whether a response contains indices with the settings that every index has. */
function isComplete(found: unknown): found is estypes.IndicesGetResponse {
  const indices = Object.values((found ?? {}) as Partial<estypes.IndicesGetResponse>);
  return (
    indices.length > 0 && indices.every((index) => index?.settings?.index?.number_of_shards !== undefined)
  );
}

/** Whether this version can serve a snapshot. */
export function isReadable(found: FoundIndex): found is FoundIndex & Snapshot {
  return found.meta !== undefined;
}

/** Shortens the chain of a snapshot to at most `limit` ancestors. The index may have been built with a higher limit. */
export function withChainLimit(snapshot: Snapshot, limit: number): Snapshot {
  const { meta } = snapshot;
  if (meta.lineage === undefined) return snapshot;
  const ancestors = meta.lineage.ancestors.slice(0, limit);
  return { ...snapshot, meta: { ...meta, lineage: { ...meta.lineage, ancestors } } };
}
