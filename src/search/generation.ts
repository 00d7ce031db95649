import { errors, type Client, type estypes, type TransportRequestOptions } from '@elastic/elasticsearch';
import { z } from 'zod';
import { EngineUnavailableError, isRetryable } from '../clients/search-pool.js';
import { SNAPSHOT_ID, snapshotIdOf } from './index-names.js';

const count = z.int().nonnegative();

/** Where a snapshot comes from, recorded once it has been compared with the one before. */
const lineage = z.object({
  /**
   * Ids of the snapshots that led to this one, the latest first. The changes from each of them are recorded. None for the
   * first snapshot of a chain.
   */
  ancestors: z.array(z.string().regex(SNAPSHOT_ID)),
  /** How many packages differ from the snapshot before. */
  added: count,
  removed: count,
  updated: count,
});

export type Lineage = z.infer<typeof lineage>;

/** What belongs to one build, kept in the index's `_meta`. */
const generationMeta = z.object({
  /** Of what the service reads; fields that only people count by in Kibana may come and go without another one. */
  schema_version: z.literal(1),
  /** How many packages there are. */
  total: z.int().nonnegative(),
  /** The registry's website, such as `tracker.debian.org`. */
  source: z.string(),
  /** When the snapshot was taken, as far as its origin tells (ISO 8601). */
  taken_at: z.iso.datetime(),
  /** SHA-256 of the dataset file, in hexadecimal: it tells whether the dataset has changed. */
  dataset_digest: z.string(),
  /** What its origin said of it, to ask whether it has changed: its address as SHA-256, `ETag` and `Last-Modified`. */
  dataset_validators: z
    .object({ origin: z.string(), etag: z.string().optional(), lastModified: z.string().optional() })
    .optional(),
  /** Of mappings/packages.json, see `MAPPING_VERSION`; 1 in builds of earlier releases, which do not record it. */
  mapping_version: z.int().default(1),
  /** Whether the dataset has the column `package_no`: without it, numbers are positions, and no change. */
  has_package_no: z.boolean().default(true),
  /** What is known of its ancestry; undefined if it was not compared with the snapshot before. */
  lineage: lineage.optional().catch(undefined),
});

/**
 * The version of mappings/packages.json that this release writes. Raise it with every field that a feature needs: the next
 * refresh then builds, even if the dataset has not changed. Generations of other versions are served without the feature.
 * 2: `name.fold`.
 */
export const MAPPING_VERSION = 2;

/** The first version with `name.fold`. */
const FOLD_VERSION = 2;

/** Whether look-alikes can be found in a generation: those of earlier releases lack the field. */
export function hasFold({ mapping_version }: GenerationMeta): boolean {
  return mapping_version >= FOLD_VERSION;
}

export type GenerationMeta = z.infer<typeof generationMeta>;

/** One build that is complete: an index that never changes again. */
export interface Generation {
  index: string;
  /** The id that clients know it by. */
  snapshot: string;
  shards: number;
  meta: GenerationMeta;
}

/** The index an alias points to, whether or not this version can serve it. */
export interface FoundGeneration {
  index: string;
  snapshot: string;
  shards: number;
  /** Undefined if `_meta` was written by another version, or not by this service. */
  meta: GenerationMeta | undefined;
  /** When the index was created, in milliseconds since the epoch. */
  createdAt: number;
  /** Whether an operator closed the index: it cannot be searched. */
  closed: boolean;
}

/**
 * For the requests of the client that users wait for: a retry follows at once. The client's own pause is up to two
 * seconds, which is all the time there is.
 */
const IMMEDIATE_RETRY = { retryBackoff: () => 0 };

/**
 * The generation an alias points to, or undefined if there is none.
 * @throws {EngineUnavailableError} if Elasticsearch does not respond, or the alias points to more than one index.
 */
export async function findGeneration(
  client: Client,
  alias: string,
  options: Pick<TransportRequestOptions, 'signal'> = {},
): Promise<FoundGeneration | undefined> {
  const look = () => client.indices.get(lookAt(alias), { ...IMMEDIATE_RETRY, ...options });
  const found = await callElasticsearch(look).catch(emptyWhereAbsent);
  const [index, ...others] = Object.keys(found).sort().reverse();
  if (index === undefined) return undefined;
  if (others.length > 0) {
    throw new EngineUnavailableError(
      `the alias ${alias} points to more than one index: ${[index, ...others].join(', ')}`,
    );
  }
  const { mappings, settings } = found[index] ?? {};
  return {
    index,
    snapshot: snapshotIdOf(index),
    shards: Number(settings?.index?.number_of_shards),
    meta: generationMeta.safeParse(mappings?._meta).data,
    createdAt: Number(settings?.index?.creation_date),
    closed: String(settings?.index?.verified_before_close) === 'true',
  };
}

/** Asks for no more than what a generation is made of: every replica asks every second. */
function lookAt(alias: string): estypes.IndicesGetRequest {
  return {
    index: alias,
    features: ['mappings', 'settings'],
    filter_path: [
      '*.mappings._meta',
      ...['number_of_shards', 'creation_date', 'verified_before_close'].map(
        (name) => `*.settings.index.${name}`,
      ),
      'error',
      'status',
    ],
  };
}

function emptyWhereAbsent(error: unknown): estypes.IndicesGetResponse {
  if (error instanceof errors.ResponseError && error.statusCode === 404) return {};
  throw error;
}

/**
 * Checks what is about to be written into an index by the schema that reads it: replicas must be able to serve it.
 * @throws {Error} naming the first field they could not read.
 */
export function assertReadable(meta: GenerationMeta): void {
  const issue = generationMeta.safeParse(meta).error?.issues[0];
  if (issue !== undefined)
    throw new Error(`the _meta of the index would be invalid: ${issue.path.join('.')}: ${issue.message}`);
}

/** Whether this version can serve a generation. */
export function isReadable(found: FoundGeneration): found is FoundGeneration & Generation {
  return found.meta !== undefined;
}

/** A generation whose lineage names at most so many ancestors: an index may have been built with a higher limit. */
export function withAncestors(generation: Generation, limit: number): Generation {
  const { meta } = generation;
  if (meta.lineage === undefined) return generation;
  const ancestors = meta.lineage.ancestors.slice(0, limit);
  return { ...generation, meta: { ...meta, lineage: { ...meta.lineage, ancestors } } };
}

/** Sends a request. @throws {EngineUnavailableError} in place of the client's own errors if the same request may succeed later. */
async function callElasticsearch<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof errors.ResponseError && !isRetryable(error.statusCode ?? 500)) throw error;
    if (error instanceof errors.ElasticsearchClientError) {
      throw new EngineUnavailableError(error.message, { cause: error });
    }
    throw error;
  }
}
