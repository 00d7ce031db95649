import { errors, type Client, type estypes, type TransportRequestOptions } from '@elastic/elasticsearch';
import { errorIn } from '../elasticsearch/elasticsearch.js';
import { ElasticsearchUnavailableError } from '../elasticsearch/elasticsearch-errors.js';
import { builtAt, previousAliasOf, snapshotIdOf } from './index-names.js';
import { snapshotMeta, type SnapshotMeta } from './snapshot-meta.js';

/** A complete list of packages, in an index that never changes again. */
export interface Snapshot {
  index: string;
  id: string;
  meta: SnapshotMeta;
}

/** What the alias points to cannot be served. Only an operator can correct this. The message says how. */
export class UnusableAliasError extends ElasticsearchUnavailableError {}

/** The index an alias points to, whether or not this version can serve it. */
export interface FoundIndex extends Omit<Snapshot, 'meta'> {
  aliases: string[];
  /** Undefined if `_meta` was not written by this service. */
  meta: SnapshotMeta | undefined;
  /** When the index was created, in milliseconds since the epoch. */
  createdAt: number;
  /** Whether an operator closed the index: it cannot be searched. */
  closed: boolean;
  /** The block (see `BLOCKS`) that prevents changes of the index's aliases, if any. */
  block: string | undefined;
}

/**
 * @param alias may also be the name of a snapshot index.
 * @throws {ElasticsearchUnavailableError} if Elasticsearch does not respond, or its response is incomplete.
 * @throws {UnusableAliasError} if the alias points to more than one index, or an index has the alias's name.
 */
export async function findIndex(
  client: Client,
  alias: string,
  options: Pick<TransportRequestOptions, 'signal'> = {},
): Promise<FoundIndex | undefined> {
  return indexBehind(alias, await getIndices(client, [alias], options));
}

/**
 * Sends one request. `previous` is undefined if its index is closed, or if there is no current snapshot.
 * @throws the errors of `findIndex` for the alias of the current snapshot.
 */
export async function findServed(
  client: Client,
  alias: string,
): Promise<{ current: FoundIndex | undefined; previous: FoundIndex | undefined }> {
  const previousAlias = previousAliasOf(alias);
  // The first snapshot has no previous one. Unlike a name, a pattern may match nothing.
  const found = await getIndices(client, [alias, `${previousAlias}*`]);
  const current = indexBehind(
    alias,
    found.filter(({ aliases, index }) => index === alias || aliases.includes(alias)),
  );
  return { current, previous: found.find(({ aliases }) => aliases.includes(previousAlias)) };
}

/** @throws {UnusableAliasError} like `findIndex`. */
function indexBehind(alias: string, [found, ...others]: FoundIndex[]): FoundIndex | undefined {
  if (others.length > 0) {
    const cause = new Error([found, ...others].map((one) => one?.index).join(', '));
    throw new UnusableAliasError(`the alias ${alias} points to more than one index: leave one`, { cause });
  }
  if (found?.index === alias && builtAt(alias) === undefined)
    throw new UnusableAliasError(`an index has the name of the alias ${alias}: rename or delete it`);
  return found;
}

/** These blocks prevent changes of aliases; the block of a full disk does not. */
const BLOCKS = ['read_only', 'metadata'] as const;

/** Requests only the fields that a snapshot needs, because every replica polls every second. */
const FILTER_PATH = [
  '*.aliases',
  '*.mappings._meta',
  ...['number_of_shards', 'creation_date', 'verified_before_close', 'blocks'].map(
    (name) => `*.settings.index.${name}`,
  ),
  'error',
  'status',
];

/** Empty if an index that is named without a pattern does not exist. @throws {ElasticsearchUnavailableError} */
async function getIndices(
  client: Client,
  names: string[],
  options: TransportRequestOptions = {},
): Promise<FoundIndex[]> {
  const features: estypes.IndicesGetFeature[] = ['aliases', 'mappings', 'settings'];
  const found = await client.indices
    // Retried without a pause, because users wait: the client's backoff of up to two seconds would take too long.
    .get({ index: names, features, filter_path: FILTER_PATH }, { retryBackoff: () => 0, ...options })
    .catch(undefinedIfAbsent);
  if (found === undefined) return [];
  const indices = Object.entries(found).map(([index, { aliases, mappings, settings }]) => ({
    index,
    aliases: Object.keys(aliases ?? {}),
    id: snapshotIdOf(index),
    meta: snapshotMeta.safeParse(mappings?._meta).data,
    createdAt: Number(settings?.index?.creation_date),
    closed: String(settings?.index?.verified_before_close) === 'true',
    block: BLOCKS.find((name) => String(settings?.index?.blocks?.[name]) === 'true'),
  }));
  // Elasticsearch reports an absent alias as an error, so a response without an index is incomplete. A proxy may have
  // changed it.
  if (indices.length === 0 || indices.some(({ createdAt }) => Number.isNaN(createdAt)))
    throw new ElasticsearchUnavailableError('the response of Elasticsearch is not complete');
  return indices;
}

/** @throws {ElasticsearchUnavailableError} for errors of the client other than an absent index or alias. */
function undefinedIfAbsent(error: unknown): undefined {
  if (error instanceof errors.ResponseError && errorIn(error).type === 'index_not_found_exception') return;
  if (!(error instanceof errors.ElasticsearchClientError)) throw error;
  throw new ElasticsearchUnavailableError(error.message, { cause: error });
}

export function isReadable(found: FoundIndex): found is FoundIndex & Snapshot {
  return found.meta !== undefined;
}
