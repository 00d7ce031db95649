import type { Client, estypes } from '@elastic/elasticsearch';
import { retry, waitUntilDone, type RetryOptions } from './retry.js';

/**
 * Pause before a merge that is not running is requested again, in milliseconds. Elasticsearch keeps the request in memory
 * only: a node that restarts forgets it. It may also wait in a queue behind the merge of another index; requesting the
 * same merge twice is harmless.
 */
const REQUEST_AGAIN_MS = 60_000;

/** Bytes written so far, and the expected total. */
export type OnBytes = (done: number, total: number) => void;

export interface SealOptions extends RetryOptions {
  onBytes: OnBytes;
}

/**
 * Merges a loaded index to one searchable segment per shard and blocks writes to it. The merge may take hours: it is
 * started without waiting for its response and then observed.
 * @param total documents in the index.
 * @throws {StalledError} when the merge makes no progress.
 */
export async function seal(
  client: Client,
  index: string,
  total: number,
  options: SealOptions,
): Promise<void> {
  const { onBytes, signal: stopped } = options;
  await retry((signal) => client.indices.refresh({ index }, { signal }), options);
  const { bytes: unmerged } = await retry((signal) => readMerge(client, index, signal), options);
  let requestedAt = -Infinity;
  const request = async (signal: AbortSignal) => {
    if (performance.now() - requestedAt < REQUEST_AGAIN_MS) return;
    await client.indices.forcemerge({ index, max_num_segments: 1, wait_for_completion: false }, { signal });
    requestedAt = performance.now();
  };
  await waitUntilDone(
    'the merge',
    async (signal) => {
      const { segments, merging, bytes, merges } = await readMerge(client, index, signal).catch(
        (error: unknown) => {
          // The node may have restarted and lost the request.
          requestedAt = -Infinity;
          throw error;
        },
      );
      onBytes(Math.min(Math.max(0, bytes - unmerged), unmerged), unmerged);
      if (merging === 0) {
        if (isMerged(segments, total)) return { done: true, evidence: undefined };
        await request(signal);
        // Makes the result of a finished merge searchable.
        await client.indices.refresh({ index }, { signal });
      }
      return { done: false, evidence: { segments: segments.length, merging, bytes, merges } };
    },
    options,
  );
  stopped.throwIfAborted();
  await retry((signal) => client.indices.addBlock({ index, block: 'write' }, { signal }), options);
}

/** @throws {Error} if a shard has more than one segment: searches rely on the order of documents in a segment. */
export async function assertOneSegment(client: Client, index: string, signal: AbortSignal): Promise<void> {
  const searched = (await readSegments(client, index, signal)).filter(({ search }) => search);
  const perShard = new Map<string, number>();
  for (const { shard } of searched) perShard.set(shard, (perShard.get(shard) ?? 0) + 1);
  const most = Math.max(0, ...perShard.values());
  if (most > 1) throw new Error(`a shard of ${index} has ${most} segments after it was merged to one`);
}

/** A segment of one copy of a shard. */
type Segment = estypes.IndicesSegmentsSegment & { shard: string };

async function readSegments(client: Client, index: string, signal: AbortSignal): Promise<Segment[]> {
  const { indices } = await client.indices.segments({ index }, { signal });
  return Object.entries(indices[index]?.shards ?? {}).flatMap(([number, copies]) =>
    [copies]
      .flat()
      .flatMap(({ routing, segments }) =>
        Object.values(segments).map((segment) => ({ ...segment, shard: `${number} on ${routing.node}` })),
      ),
  );
}

/** Everything the key for rebuilding can observe of a merge; tasks are visible to administrators only. */
async function readMerge(client: Client, index: string, signal: AbortSignal) {
  const [segments, { indices = {} }] = await Promise.all([
    readSegments(client, index, signal),
    client.indices.stats({ index, metric: ['merge', 'store'] }, { signal }),
  ]);
  const { merges, store } = indices[index]?.primaries ?? {};
  return {
    segments,
    /** Merges that are running, of any kind. */
    merging: merges?.current ?? 0,
    /** Merges that have ended. */
    merges: merges?.total ?? 0,
    /** Size on disk, including what an unfinished merge has written. Elasticsearch updates it every ten seconds. */
    bytes: store?.size_in_bytes ?? 0,
  };
}

/** Whether all documents are in committed, searchable segments, one per shard. */
function isMerged(segments: Segment[], total: number): boolean {
  const shards = new Set(segments.map(({ shard }) => shard));
  return (
    shards.size === segments.length &&
    segments.every(({ committed, search }) => committed && search) &&
    segments.reduce((sum, { num_docs }) => sum + num_docs, 0) === total
  );
}
