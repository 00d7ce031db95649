import { readFile } from 'node:fs/promises';
import { errors, type Client, type estypes } from '@elastic/elasticsearch';
import type { GenerationMeta } from '../search/generation.js';
import { loadingAliasOf } from '../search/index-names.js';
import { assertOneSegment, type OnBytes } from './force-merge.js';
import { retry, waitUntilDone, type RetryOptions } from './retry.js';

/** The content of an index: the names of the files in `mappings/`. */
type Content = 'packages' | 'changes';

interface NewIndex {
  index: string;
  shards: number;
  meta?: GenerationMeta;
}

/** Creates an index from the file in `mappings/`, without replicas and refresh during the load. */
export async function createIndex(
  client: Client,
  content: Content,
  { index, shards, meta }: NewIndex,
  signal: AbortSignal,
): Promise<void> {
  const file = new URL(`../../mappings/${content}.json`, import.meta.url);
  const { settings, mappings } = JSON.parse(await readFile(file, 'utf8')) as Required<
    Pick<estypes.IndicesCreateRequest, 'settings' | 'mappings'>
  >;
  try {
    await client.indices.create(
      {
        index,
        settings: { ...settings, number_of_shards: shards },
        mappings: { ...mappings, ...(meta === undefined ? {} : { _meta: meta }) },
        aliases: { [loadingAliasOf(index)]: {} },
      },
      { signal },
    );
  } catch (error) {
    // The client sends the request again if it lost the response. Nobody else creates an index of this name.
    if (!isAlreadyCreated(error)) throw error;
  }
}

function isAlreadyCreated(error: unknown): boolean {
  if (!(error instanceof errors.ResponseError)) return false;
  const { error: reason } = error.body as { error?: { type?: string } };
  return reason?.type === 'resource_already_exists_exception';
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
  index: string,
  replicas: string,
  options: ReplicaOptions,
): Promise<void> {
  await waitForCopies(client, index, replicas, options);
  await assertOneSegment(client, index, options.signal);
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
  const count = await countDocuments(client, index, options);
  if (count !== total) throw new Error(`${index} has ${count} documents instead of ${total}`);
  await retry((signal) => client.indices.addBlock({ index, block: 'write' }, { signal }), options);
}

/**
 * Sets the number of copies and the usual settings, and waits until all copies exist, which may take hours.
 * @param replicas INDEX_REPLICAS: a number or a range.
 * @throws {StalledError} if no copy makes progress: there may be too few nodes, or no disk space.
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
  await waitUntilDone(
    `copying the index (INDEX_REPLICAS=${replicas})`,
    async (signal) => {
      if (await isGreen(client, index, signal)) return { done: true, evidence: undefined };
      const { done, total, stages } = await readCopies(client, index, signal);
      options.onBytes(done, total);
      return { done: false, evidence: { done, total, stages } };
    },
    options,
  );
}

/**
 * Whether every copy of the index exists: the request lists only shards that are not green. The cluster
 * health API would require the privilege to monitor the whole cluster.
 */
async function isGreen(client: Client, index: string, signal: AbortSignal): Promise<boolean> {
  const { indices } = await client.indices.shardStores({ index }, { signal });
  return Object.keys(indices).length === 0;
}

/** Bytes copied so far by all copies, and the stage of each. */
async function readCopies(client: Client, index: string, signal: AbortSignal) {
  const found = await client.indices.recovery({ index }, { signal });
  const copies = (found[index]?.shards ?? []).filter(({ type }) => type === 'PEER');
  const sum = (bytes: (copy: (typeof copies)[number]) => unknown) =>
    copies.reduce((total, copy) => total + Number(bytes(copy) ?? 0), 0);
  return {
    done: sum(({ index: files }) => files.size.recovered_in_bytes),
    total: sum(({ index: files }) => files.size.total_in_bytes),
    stages: copies.map(({ stage, translog }) => `${stage} ${translog.recovered}`),
  };
}

/** Documents in an index. */
export async function countDocuments(client: Client, index: string, options: RetryOptions): Promise<number> {
  const { count } = await retry((signal) => client.count({ index }, { signal }), options);
  return count;
}
