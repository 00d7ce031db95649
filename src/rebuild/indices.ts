import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client, estypes } from '@elastic/elasticsearch';
import type { GenerationMeta } from '../catalog/generation.js';
import { loadingAliasOf } from './index-names.js';

const DEFINITION = new URL('../../mappings/packages.json', import.meta.url);

/** Merging takes five seconds for a million names, in milliseconds; more than a hundred million have time enough. */
const MERGE_TIMEOUT_MS = 3_600_000;
/** For so long the copies of an index may take to be made, in milliseconds. */
const COPY_TIMEOUT_MS = 300_000;
/** How often to look whether they are, in milliseconds. */
const COPY_POLL_MS = 250;

/** Creates the index of a build as mappings/packages.json says: without copies and refresh, for the load. */
export async function createIndex(
  client: Client,
  index: string,
  shards: number,
  meta: GenerationMeta,
): Promise<void> {
  const definition = JSON.parse(await readFile(DEFINITION, 'utf8')) as Required<
    Pick<estypes.IndicesCreateRequest, 'settings' | 'mappings'>
  >;
  await client.indices.create({
    index,
    settings: { ...definition.settings, number_of_shards: shards },
    mappings: { ...definition.mappings, _meta: meta },
    aliases: { [loadingAliasOf(index)]: {} },
  });
}

/** Makes what was loaded searchable, in one segment a shard, and closes the index to writes for good. */
export async function seal(client: Client, index: string, signal: AbortSignal): Promise<void> {
  await client.indices.refresh({ index }, { signal });
  await client.indices.forcemerge(
    { index, max_num_segments: 1 },
    { signal, requestTimeout: MERGE_TIMEOUT_MS },
  );
  await client.indices.refresh({ index }, { signal });
  await client.indices.addBlock({ index, block: 'write' }, { signal });
}

/** Gives the index its copies and usual settings, and waits until all of them are there. */
export async function settle(
  client: Client,
  index: string,
  replicas: string,
  signal: AbortSignal,
): Promise<void> {
  const copies = replicas.includes('-')
    ? { auto_expand_replicas: replicas }
    : { auto_expand_replicas: 'false', number_of_replicas: Number(replicas) };
  await client.indices.putSettings({ index, settings: { ...copies, refresh_interval: '1s' } }, { signal });
  const deadline = performance.now() + COPY_TIMEOUT_MS;
  while (!(await isGreen(client, index, signal))) {
    if (performance.now() > deadline) {
      throw new Error(
        `the copies of the index are not complete after five minutes: INDEX_REPLICAS is ${replicas}`,
      );
    }
    await pause(COPY_POLL_MS, undefined, { signal });
  }
  await requireOneSegment(client, index);
}

/**
 * Whether every copy of the index is there: its master lists the shards that are not green. The health of the cluster
 * tells the same, and could be waited for, but only to who may monitor all of the cluster.
 */
async function isGreen(client: Client, index: string, signal: AbortSignal): Promise<boolean> {
  const { indices } = await client.indices.shardStores({ index }, { signal });
  return Object.keys(indices).length === 0;
}

/** Searches rely on it: the order of documents in an index is that of each segment. @throws where a shard has more. */
async function requireOneSegment(client: Client, index: string): Promise<void> {
  const { indices } = await client.indices.segments({ index });
  for (const copies of Object.values(indices[index]?.shards ?? {})) {
    for (const { segments } of [copies].flat()) {
      const searched = Object.values(segments).filter(({ search }) => search);
      if (searched.length > 1) {
        throw new Error(`a shard of ${index} has ${searched.length} segments after it was merged to one`);
      }
    }
  }
}
