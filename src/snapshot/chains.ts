import { LRUCache } from 'lru-cache';
import { IndexClosedError, IndexGoneError } from '../elasticsearch/elasticsearch-errors.js';
import type { Snapshot } from './snapshot.js';
import { SnapshotGoneError, type SnapshotWatcher } from './snapshot-watcher.js';
import { isChangesOf, snapshotIdOf } from './index-names.js';

/** Time until missing changes are requested again, in milliseconds: an operator may restore or open their index. */
const MISSING_MS = 60_000;

/** CHANGES_RETENTION was 0, the rebuild key lacked a privilege, or the recording of the chain failed. */
export class NoChainError extends Error {
  override readonly name = 'NoChainError';
}

/** A range of consecutive snapshots. */
export interface Chain {
  /** Id of the first snapshot. */
  from: string;
  /** Ids of the following snapshots, oldest first. */
  snapshots: readonly string[];
}

/** A snapshot, and the chain from `since` to this snapshot. */
export interface ChangesSource extends Snapshot {
  chain: Chain;
}

/** If the index with the changes of a snapshot was deleted or closed, chains begin at this snapshot. */
export class Chains {
  /** Snapshots whose changes are missing. The maximum exceeds two chains: CHANGES_RETENTION is at most 100. */
  readonly #missing = new LRUCache<string, true>({ max: 1000, ttl: MISSING_MS });

  constructor(private readonly snapshots: SnapshotWatcher) {}

  /**
   * If `since` is not in the chain, reads the aliases once more, because this replica may have missed a flip.
   * @throws {NoChainError} {SnapshotGoneError} {NotInitializedError} {ElasticsearchUnavailableError}
   */
  async select(id: string | undefined, since: string | undefined): Promise<ChangesSource> {
    let snapshot = await this.snapshots.select(id);
    let chain = this.#chain(snapshot, since);
    // The chain of a given snapshot never becomes longer.
    if (chain === undefined && id === undefined) {
      await this.snapshots.refresh();
      snapshot = this.snapshots.served();
      chain = this.#chain(snapshot, since);
    }
    if (chain !== undefined) return { ...snapshot, chain };
    this.snapshots.assertKnown();
    // Without `since`, there is always a chain.
    const isAncestor = snapshot.meta.lineage?.ancestors.includes(since ?? '');
    throw new SnapshotGoneError(since ?? '', isAncestor ? 'changes_deleted' : 'not_in_chain');
  }

  /** Newest first, up to the first id whose changes are missing. @throws {NoChainError} */
  idsOf({ id, meta }: Snapshot): string[] {
    if (meta.lineage === undefined) throw new NoChainError(id);
    const ids = [id, ...meta.lineage.ancestors];
    const first = ids.findIndex((one) => this.#missing.has(one));
    return first === -1 ? ids : ids.slice(0, first + 1);
  }

  /** Makes chains begin at the snapshot whose changes are missing. @returns false for other errors. */
  shorten(error: unknown): boolean {
    if (!(error instanceof IndexGoneError || error instanceof IndexClosedError)) return false;
    if (!isChangesOf(this.snapshots.alias, error.index)) return false;
    this.#missing.set(snapshotIdOf(error.index), true);
    return true;
  }

  /** @returns undefined if `since` is not in the chain. */
  #chain(snapshot: Snapshot, since: string | undefined): Chain | undefined {
    const ids = this.idsOf(snapshot);
    const from = since ?? ids[1] ?? snapshot.id;
    const length = ids.indexOf(from);
    return length === -1 ? undefined : { from, snapshots: ids.slice(0, length).reverse() };
  }
}
