import type { Client } from '@elastic/elasticsearch';
import type { SearchPool } from '../elasticsearch/search-pool.js';
import { isSnapshotOf, newIndexName, previousAliasOf } from '../snapshot/index-names.js';
import { findIndex, type FoundIndex } from '../snapshot/snapshot.js';
import { assertReadable, type SnapshotMeta } from '../snapshot/snapshot-meta.js';
import type { Logger } from '../util/log.js';
import { createIndex } from './create.js';
import { flip } from './flip.js';
import { load, type NewDocument } from './load.js';
import { assertOneSegment, merge } from './merge.js';
import { discardSnapshot, listIndices, obsolete, prune } from './prune.js';
import { recordChanges } from './record-changes.js';
import { replicate } from './replicate.js';
import { verify } from './verify.js';

/**
 * Publishes a new snapshot of a registry without downtime. Under a lock: `findExisting`, `clean`, `publish`, `clean`. The
 * alias `debian-packages-v2` serves one index, for example `debian-packages-v2-20260131t120000z-1a2b3c4d`.
 *
 * Each phase, its file, and what a process leaves that is killed in it. The old snapshot is served until the flip.
 *
 *     creating     create          an index with the alias `<index>-loading`, which nobody reads
 *     loading      load            the same, with some documents
 *     merging      merge           the same, with one segment, and blocked writes at the end
 *     verifying    verify          the same
 *     comparing    record-changes  also an index of changes with its loading alias and copies; the chain in `_meta`
 *     replicating  replicate       the same, with copies
 *     flipping     flip            the same, or the new snapshot is served: one request moves all aliases
 *     pruning      prune           the new snapshot is served; some old indices are left
 *
 * The lock saves work, and its loss aborts `signal`. It does not make this safe: a process that was suspended may go on
 * after another one has taken the lock. Three invariants do, for rollbacks (`rollback`), too:
 *
 * 1. Fence: a request that changes what is served, or deletes an index that another process could serve, has a
 *    precondition (`must_exist`) on the state that its sender knows. Elasticsearch applies all of a request, or nothing.
 * 2. Loading alias: an index has it from its creation until its flip. Documents are written only through this alias, the
 *    flip removes it, and a deletion after a failure must remove it first. Therefore a served index never changes, a late
 *    write does not create a deleted index again, and no index is both served and deleted.
 * 3. One segment: a snapshot's index is sorted, and every copy has one segment, so a search may stop after its first
 *    hits.
 *
 * Deletions: `publish` deletes its own indices after a failure. `clean` deletes what no alias and no chain needs, also
 * what killed processes left; the next rebuild begins with it.
 */

/** The connections and the log of a registry. All have the rights to rebuild. */
export interface PublishContext {
  client: Client;
  /** Searches the new index. */
  pool: SearchPool;
  /** Reads whole snapshots: it must have a long timeout. */
  exportPool: SearchPool;
  alias: string;
  log: Logger;
}

/** What a registry has in Elasticsearch before a new snapshot is published. */
export interface Existing {
  served: FoundIndex | undefined;
  previous: FoundIndex | undefined;
  /** All snapshots and changes. */
  indices: string[];
}

export interface NewSnapshot {
  meta: SnapshotMeta;
  /** As many documents as `meta.total`, at least one, with ordinals from 0. They are read once. */
  documents: AsyncIterable<Iterable<NewDocument>>;
}

/** The steps of `publish`, in their order. */
export const STEPS = [
  'creating',
  'loading',
  'merging',
  'verifying',
  'comparing',
  'replicating',
  'flipping',
] as const;

/** Follows the phases. */
interface Listener {
  enter(phase: (typeof STEPS)[number], rows?: number): void;
  change(progress: { rows?: number; bytes?: number; total_bytes?: number }): void;
}

export interface PublishOptions {
  /** Aborts when the lock is lost or the process stops: ends before the flip, or before the next deletion. */
  signal: AbortSignal;
  progress: Listener;
  /** INDEX_REPLICAS */
  replicas: string;
  /** CHANGES_RETENTION: number of snapshots whose changes are kept. */
  retention: number;
}

/** Bulk requests in flight: Elasticsearch processes one while the next arrives. */
const IN_FLIGHT = 2;

/** While another index is served: its slowest searches take half as long, and the load takes a third longer. */
const THROTTLED_IN_FLIGHT = 1;

/** The caller must have the lock after the call, too: otherwise, the list could have indices of another process. */
export async function findExisting(
  { client, alias }: PublishContext,
  signal: AbortSignal,
): Promise<Existing> {
  const served = await findIndex(client, alias, { signal });
  const previous = await findIndex(client, previousAliasOf(alias), { signal });
  return { served, previous, indices: await listIndices(client, alias, signal) };
}

/**
 * Builds an index and serves it. After a failure before the flip, the old snapshot stays in service, and the index is
 * deleted.
 * @returns the index.
 * @throws {FlipError} if it is unknown which snapshot is served.
 */
export async function publish(
  context: PublishContext,
  { served, previous }: Existing,
  { meta, documents }: NewSnapshot,
  options: PublishOptions,
): Promise<string> {
  const { client, pool, alias, log } = context;
  const { progress, signal, replicas } = options;
  const step = {
    signal,
    log,
    onRows: (rows: number) => progress.change({ rows }),
    onBytes: (bytes: number, total_bytes: number) => progress.change({ bytes, total_bytes }),
  };
  assertReadable(meta);
  const { total } = meta;
  const index = newIndexName(alias, new Date());
  try {
    progress.enter('creating');
    await createIndex(client, 'packages', { index, meta }, step);
    progress.enter('loading', total);
    const inFlight = served === undefined ? IN_FLIGHT : THROTTLED_IN_FLIGHT;
    const loaded = await load(client, index, documents, { inFlight, ...step });
    if (loaded !== total) throw new Error(`${loaded} of ${total} documents were loaded`);
    progress.enter('merging');
    await merge(client, index, total, step);
    progress.enter('verifying');
    await verify(pool, { index, meta }, step);
    progress.enter('comparing', total);
    const changes = await recordChanges(context, served, { index, meta }, { ...options, ...step });
    progress.enter('replicating');
    await replicate(client, index, replicas, step);
    await assertOneSegment(client, index, step);
    signal.throwIfAborted();
    progress.enter('flipping');
    await flip(client, alias, { from: served?.index, previous: previous?.index, to: index, changes }, step);
    return index;
  } catch (error) {
    await discardSnapshot(context, index);
    throw error;
  }
}

/**
 * Deletes the indices that no alias and no chain needs, on condition that `current` is still served. Never throws: the
 * next call deletes the rest.
 * @param current undefined if nothing is served. Only indices with their loading alias are deleted then.
 */
export async function clean(
  { client, alias, log }: PublishContext,
  { served, previous, indices }: Existing,
  current: string | undefined,
  { signal, retention }: PublishOptions,
): Promise<void> {
  // If an operator had moved the alias to an index that no rebuild created, the flip kept the previous snapshot.
  const replaced = served !== undefined && isSnapshotOf(alias, served.index) ? served : previous;
  const kept = served?.index === current ? [served, previous] : [replaced];
  const old = obsolete(alias, indices, kept, retention);
  await prune(client, alias, old, { current, signal, log });
}
