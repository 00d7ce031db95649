import { IndexClosedError, IndexGoneError } from '../clients/engine-errors.js';
import type { Generation } from './generation.js';
import { SnapshotGoneError, type GenerationWatcher } from './generation-watcher.js';
import { isChangesOf, snapshotIdOf } from './index-names.js';

/** How long changes that were missing are not asked for, in milliseconds: an operator may restore or open their index. */
const MISSING_MS = 60_000;

/**
 * The lineage of the generation was not recorded: it was built by an earlier release, with
 * CHANGES_RETENTION=0, or with a key that lacks the right, or the recording failed.
 */
export class NoLineageError extends Error {
  override readonly name = 'NoLineageError';
}

/** The snapshots from one to another. */
export interface Chain {
  /** Id of the first. */
  from: string;
  /** Ids of the following ones, oldest first. */
  snapshots: readonly string[];
}

/** A generation, and the chain that leads to it from the snapshot that a client has. */
export interface ChangesSource extends Generation {
  chain: Chain;
}

/**
 * The snapshots that led to a generation, as far as their changes exist: if somebody deleted or closed an index of
 * changes, the chain begins there.
 */
export class Chains {
  /** Ids of snapshots whose changes are missing, and until when they count as missing. */
  readonly #missing = new Map<string, number>();

  constructor(private readonly generations: GenerationWatcher) {}

  /**
   * The generation of a snapshot, or the current one, with its chain since another snapshot. If `since` is unknown, a
   * flip may have been missed, so the aliases are read once more.
   * @throws {NoLineageError} {SnapshotGoneError} {NotInitializedError} {EngineUnavailableError}
   */
  async select(snapshot: string | undefined, since: string | undefined): Promise<ChangesSource> {
    let generation = await this.generations.select(snapshot);
    let chain = this.#chain(generation, since);
    if (chain === undefined) {
      await this.generations.refreshAll();
      generation = await this.generations.select(snapshot);
      chain = this.#chain(generation, since);
    }
    if (chain !== undefined) return { ...generation, chain };
    this.generations.assertKnown();
    throw new SnapshotGoneError(since);
  }

  /**
   * The ids of the snapshot of a generation and of those that led to it, newest first, as far as the changes exist.
   * @throws {NoLineageError}
   */
  lineage({ snapshot, meta }: Generation): string[] {
    if (meta.lineage === undefined) throw new NoLineageError(snapshot);
    const ids = [snapshot, ...meta.lineage.ancestors];
    const first = ids.findIndex((id) => this.isMissing(id));
    return first === -1 ? ids : ids.slice(0, first + 1);
  }

  /** Lets chains begin at the snapshot whose changes are missing according to an error. @returns false for another error. */
  shorten(error: unknown): boolean {
    if (!(error instanceof IndexGoneError || error instanceof IndexClosedError)) return false;
    if (!isChangesOf(this.generations.alias, error.index)) return false;
    this.#missing.set(snapshotIdOf(error.index), performance.now() + MISSING_MS);
    return true;
  }

  /** Whether the changes of a snapshot are missing. */
  isMissing(id: string): boolean {
    const until = this.#missing.get(id) ?? -Infinity;
    if (until > performance.now()) return true;
    this.#missing.delete(id);
    return false;
  }

  /** @returns undefined if `since` is not in the lineage. */
  #chain(generation: Generation, since: string | undefined): Chain | undefined {
    const ids = this.lineage(generation);
    const from = since ?? ids[1] ?? generation.snapshot;
    const length = ids.indexOf(from);
    return length === -1 ? undefined : { from, snapshots: ids.slice(0, length).reverse() };
  }
}
