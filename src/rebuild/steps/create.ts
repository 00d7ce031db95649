import { readFile } from 'node:fs/promises';
import { errors, type Client, type estypes } from '@elastic/elasticsearch';
import { errorIn } from '../../clients/elasticsearch.js';
import type { GenerationMeta } from '../../snapshot/generation.js';
import { loadingAliasOf, previousAliasOf, registryAliasOf } from '../../snapshot/index-names.js';
import { assertDocuments, assertOneSegment, type OnBytes } from './merge.js';
import { retry, waitUntilDone, type RetryOptions } from '../retry.js';
import { PROJECT_FOLDER } from '../../project-folder.js';

/** The content of an index: the names of the files in `mappings/`. */
type Content = 'packages' | 'changes';

interface NewIndex {
  index: string;
  shards: number;
  meta?: GenerationMeta;
}

/**
 * Creates an index from the file in `mappings/`, without replicas and refresh during the load. Warns of a lifecycle policy from an
 * index template: it may delete the index while it is served. Not every Elasticsearch knows the setting, so it cannot be overridden.
 * @throws {Error} if an index template gives it an alias of the registry, which would be served at once, or runtime fields, which
 * may hide those of the file.
 */
export async function createIndex(
  client: Client,
  content: Content,
  { index, shards, meta }: NewIndex,
  options: RetryOptions,
): Promise<void> {
  const file = new URL(`mappings/${content}.json`, PROJECT_FOLDER);
  const { settings, mappings } = JSON.parse(await readFile(file, 'utf8')) as Required<
    Pick<estypes.IndicesCreateRequest, 'settings' | 'mappings'>
  >;
  const request = {
    index,
    settings: { ...settings, number_of_shards: shards },
    mappings: { ...mappings, ...(meta === undefined ? {} : { _meta: meta }) },
    aliases: { [loadingAliasOf(index)]: {} },
  };
  await retry(
    // Not ended by the signal: an index that Elasticsearch creates only then would be left.
    () =>
      client.indices.create(request).catch((error: unknown) => {
        // An earlier attempt succeeded, and its response was lost. Nobody else creates an index of this name.
        if (!isAlreadyCreated(error)) throw error;
      }),
    options,
  );
  const look: estypes.IndicesGetRequest = { index, features: ['aliases', 'mappings', 'settings'] };
  const found = await retry((signal) => client.indices.get(look, { signal }), options);
  const { aliases = {}, mappings: created, settings: applied } = found[index] ?? {};
  const alias = registryAliasOf(index);
  const added = [alias, previousAliasOf(alias)].find((name) => name in aliases);
  if (added !== undefined) {
    throw new Error(`an index template adds the alias ${added} to new indices: remove it from the template`);
  }
  if (created?.runtime !== undefined) {
    throw new Error('an index template adds runtime fields to new indices: remove them from the template');
  }
  const policy = applied?.index?.lifecycle?.name;
  if (policy !== undefined) {
    options.log.warn(
      { index, policy },
      'an index template adds a lifecycle policy, which may delete the index',
    );
  }
}

function isAlreadyCreated(error: unknown): boolean {
  return error instanceof errors.ResponseError && errorIn(error).type === 'resource_already_exists_exception';
}

interface ReplicaOptions extends RetryOptions {
  onBytes: OnBytes;
}

/**
 * Copies a sealed index, as `waitForCopies` does, and checks that each shard is still one segment.
 * @throws {StalledError} {Error}
 */
export async function waitForReplicas(
  client: Client,
  { index, shards }: Pick<NewIndex, 'index' | 'shards'>,
  replicas: string,
  options: ReplicaOptions,
): Promise<void> {
  await waitForCopies(client, index, replicas, options);
  await assertOneSegment(client, index, shards, options);
}

/**
 * Makes all documents of a loaded index searchable and blocks writes to it.
 * @throws {Error} if there are not `total` documents.
 */
export async function closeLoad(
  client: Client,
  index: string,
  total: number,
  options: RetryOptions,
): Promise<void> {
  await retry((signal) => client.indices.refresh({ index }, { signal }), options);
  await assertDocuments(client, index, total, options);
  await retry((signal) => client.indices.addBlock({ index, block: 'write' }, { signal }), options);
}

/**
 * Sets the number of copies and the usual settings, and waits until all copies exist, which may take hours.
 * @param replicas INDEX_REPLICAS: a number or a range.
 * @throws {StalledError} if no copy makes progress: there may be too few nodes, or no disk space. {Error} if a copy of a shard
 * has failed and was started again three times.
 */
export async function waitForCopies(
  client: Client,
  index: string,
  replicas: string,
  options: ReplicaOptions,
): Promise<void> {
  const copies = replicas.includes('-')
    ? { auto_expand_replicas: replicas }
    : { auto_expand_replicas: 'false', number_of_replicas: Number(replicas) };
  const settings = { ...copies, refresh_interval: '1s' };
  await retry((signal) => client.indices.putSettings({ index, settings }, { signal }), options);
  const attempts = new CopyAttempts();
  await waitUntilDone(
    `copying the index (INDEX_REPLICAS=${replicas})`,
    async (signal) => {
      const failures = await readMissing(client, index, signal);
      if (failures === undefined) return { done: true, evidence: undefined };
      const { done, total, copies } = await readCopies(client, index, signal);
      options.onBytes(done, total);
      attempts.add(copies, failures);
      return { done: false, evidence: attempts.evidence };
    },
    options,
  );
}

/** How often a copy may fail and begin anew: a node may restart, and be restarted once more. */
const MAX_RESTARTS = 2;

/** The copy of a shard to another node, as Elasticsearch reports it. */
interface Copy {
  shard: number;
  startedAt: number;
  /** Bytes, operations and stage: everything that changes while it advances. */
  progress: string;
}

/** The attempts to copy the shards of an index. Elasticsearch reports those that run or have succeeded. */
class CopyAttempts {
  /** By shard: the starts of its copies, and the highest number of copies at a time. */
  readonly #shards = new Map<number, { starts: Set<number>; copies: number }>();
  readonly #seen = new Set<string>();

  /** Grows with everything that was not there before: a copy that begins anew repeats what it did. */
  get evidence(): number {
    return this.#seen.size;
  }

  /** @param failures types of the errors of copies, for the message. @throws {Error} if a copy was restarted too often. */
  add(copies: readonly Copy[], failures: readonly string[]): void {
    for (const { shard, startedAt, progress } of copies) {
      const known = this.#shards.get(shard) ?? { starts: new Set(), copies: 0 };
      this.#shards.set(shard, known);
      known.starts.add(startedAt);
      known.copies = Math.max(known.copies, copies.filter((copy) => copy.shard === shard).length);
      this.#seen.add(`${shard} ${progress}`);
      if (known.starts.size > known.copies + MAX_RESTARTS) {
        const reasons = failures.length === 0 ? '' : `: ${failures.join(', ')}`;
        throw new Error(`a copy of shard ${shard} failed ${MAX_RESTARTS + 1} times${reasons}`);
      }
    }
  }
}

/**
 * The types of errors of copies that do not exist yet; undefined if every copy exists: the request lists only shards that are
 * not green. The cluster health API would require the privilege to monitor the whole cluster.
 */
async function readMissing(
  client: Client,
  index: string,
  signal: AbortSignal,
): Promise<string[] | undefined> {
  const { indices } = await client.indices.shardStores({ index }, { signal });
  if (Object.keys(indices).length === 0) return undefined;
  const stores = Object.values(indices[index]?.shards ?? {}).flatMap((shard) => shard.stores);
  return [...new Set(stores.flatMap(({ store_exception: error }) => error?.type ?? []))];
}

/** Bytes copied so far by all copies, and each copy. */
async function readCopies(client: Client, index: string, signal: AbortSignal) {
  const found = await client.indices.recovery({ index }, { signal });
  const copies = (found[index]?.shards ?? []).filter(({ type }) => type === 'PEER');
  const sum = (bytes: (copy: (typeof copies)[number]) => unknown) =>
    copies.reduce((total, copy) => total + Number(bytes(copy) ?? 0), 0);
  return {
    done: sum(({ index: files }) => files.size.recovered_in_bytes),
    total: sum(({ index: files }) => files.size.total_in_bytes),
    copies: copies.map(({ id, start_time_in_millis, stage, translog, index: files }): Copy => ({
      shard: id,
      startedAt: start_time_in_millis,
      progress: `${stage} ${translog.recovered} ${files.size.recovered_in_bytes}`,
    })),
  };
}
