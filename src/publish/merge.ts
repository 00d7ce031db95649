import type { Client, estypes } from '@elastic/elasticsearch';
import { ElasticsearchUnavailableError } from '../elasticsearch/elasticsearch-errors.js';
import { isRetryable, retry, waitUntilDone, type LongStepOptions, type RetryOptions } from './retry.js';

/**
 * Pause before a merge is requested again if it is not running, in milliseconds. Elasticsearch keeps the request only
 * in memory, so a node that restarts forgets it. If the request only waits for the merge of another index, requesting
 * the same merge twice is harmless.
 */
const REQUEST_AGAIN_MS = 60_000;

/**
 * Merges a loaded index to one searchable segment and blocks writes to it. The merge may take hours, so it is
 * requested without waiting for the response, and then polled. (`wait_for_completion=false` would leave a document in
 * `.tasks` each time.)
 * @param total documents in the index.
 * @throws {Error} at once if there are not `total` documents, or when the merge makes no progress.
 */
export async function merge(
  client: Client,
  index: string,
  total: number,
  options: LongStepOptions,
): Promise<void> {
  await assertDocuments(client, index, total, options);
  const { bytes: unmerged } = await retry((signal) => readMerge(client, index, signal), options);
  const done = new AbortController();
  /** Earliest time of the next request, as `performance.now()`. */
  let requestAt = 0;
  let rejection: Error | undefined;
  const request = () => {
    if (performance.now() < requestAt) return;
    requestAt = performance.now() + REQUEST_AGAIN_MS;
    client.indices
      .forcemerge({ index, max_num_segments: 1 }, { signal: done.signal, maxRetries: 0 })
      .catch((error: unknown) => {
        // A merge continues after its response was lost or timed out.
        if (!done.signal.aborted && !isRetryable(error)) rejection = error as Error;
      });
  };
  await waitUntilDone(
    'the merge',
    async (signal) => {
      if (rejection !== undefined) throw rejection;
      const { segments, merging, bytes, merges } = await readMerge(client, index, signal).catch(
        (error: unknown) => {
          // The node may have restarted and lost the request.
          requestAt = 0;
          throw error;
        },
      );
      options.onBytes(Math.min(Math.max(0, bytes - unmerged), unmerged), unmerged);
      if (merging === 0) {
        if (isMerged(segments, total)) return { done: true, evidence: undefined };
        request();
        // Makes the result of a finished merge searchable.
        await client.indices.refresh({ index }, { signal });
      }
      return { done: false, evidence: { segments: segments.length, merging, bytes, merges } };
    },
    options,
  ).finally(() => done.abort());
  await seal(client, index, total, options);
}

/**
 * Blocks writes, and then makes all documents searchable, also those of a bulk request that arrived late.
 * @throws {Error} if there are not `total` documents.
 */
export async function seal(
  client: Client,
  index: string,
  total: number,
  options: RetryOptions,
): Promise<void> {
  await retry((signal) => client.indices.addBlock({ index, block: 'write' }, { signal }), options);
  await assertDocuments(client, index, total, options);
}

/**
 * Makes all documents searchable.
 * @throws {Error} if there are not `total` of them, for example because another client deleted some.
 */
async function assertDocuments(
  client: Client,
  index: string,
  total: number,
  options: RetryOptions,
): Promise<void> {
  await retry((signal) => client.indices.refresh({ index }, { signal }), options);
  const { count } = await retry(async (signal) => {
    const counted = await client.count({ index }, { signal });
    assertComplete(counted._shards);
    return counted;
  }, options);
  if (count !== total) throw new Error(`${index} has ${count} documents instead of ${total}`);
}

/** @throws {ElasticsearchUnavailableError} if the shard failed, or has no node. */
function assertComplete({ failed, successful }: { failed: number; successful: number }): void {
  if (failed > 0 || successful === 0)
    throw new ElasticsearchUnavailableError('the shard of the index did not respond');
}

/**
 * @throws {Error} if a copy of the index does not have one searchable segment: searches rely on the order of documents
 * in a segment.
 */
export async function assertOneSegment(client: Client, index: string, options: RetryOptions): Promise<void> {
  for (const segments of await retry((signal) => readSegments(client, index, signal), options)) {
    const { length } = segments.filter(({ search }) => search);
    if (length !== 1) throw new Error(`a copy of ${index} has ${length} segments after it was merged to one`);
  }
}

type Segment = estypes.IndicesSegmentsSegment;

async function readSegments(client: Client, index: string, signal: AbortSignal): Promise<Segment[][]> {
  const { indices, _shards } = await client.indices.segments({ index }, { signal });
  assertComplete(_shards);
  const copies = Object.values(indices[index]?.shards ?? {}).flat();
  return copies.map(({ segments }) => Object.values(segments));
}

/** The state of a merge, from the segments and statistics of the index. Only administrators may list tasks. */
async function readMerge(client: Client, index: string, signal: AbortSignal) {
  const [copies, { indices = {} }] = await Promise.all([
    readSegments(client, index, signal),
    client.indices.stats({ index, metric: ['merge', 'store'] }, { signal }),
  ]);
  const { merges, store } = indices[index]?.primaries ?? {};
  return {
    segments: copies.flat(),
    /** Number of running merges of the index, including automatic merges. */
    merging: merges?.current ?? 0,
    /** Number of merges that have ended. */
    merges: merges?.total ?? 0,
    /** Size on disk in bytes, including the output of unfinished merges. Elasticsearch updates it every ten seconds. */
    bytes: store?.size_in_bytes ?? 0,
  };
}

function isMerged([segment, ...others]: Segment[], total: number): boolean {
  return others.length === 0 && segment?.num_docs === total && segment.committed && segment.search;
}
