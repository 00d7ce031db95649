import type { Client } from '@elastic/elasticsearch';
import { findIndex, isReadable } from '../snapshot/snapshot.js';
import { swapActions } from './alias-actions.js';
import { moveAlias } from './flip.js';
import { previousAliasOf } from '../snapshot/index-names.js';
import type { RetryOptions } from './retry.js';

/** A rollback fails if Elasticsearch is unavailable for this time, in milliseconds. */
const STALL_MS = 60_000;

/**
 * Serves the previous snapshot. A second call reverses the first. The caller must hold the lock.
 * @param options `signal` must abort when the lock is lost.
 * @returns the index that is served now.
 * @throws {FlipError}
 * @throws {Error} if there is no previous snapshot, this version cannot read it, it is closed, or another process
 * changed what is served.
 */
export async function rollBack(client: Client, alias: string, options: RetryOptions): Promise<string> {
  const current = await findIndex(client, alias);
  const previous = await findIndex(client, previousAliasOf(alias));
  if (current === undefined) throw new Error('no snapshot is served yet');
  if (previous === undefined) throw new Error(`there is no snapshot before ${current.index}`);
  if (!isReadable(previous)) {
    throw new Error(
      `${previous.index} was written by another version of the service: deploy that version first`,
    );
  }
  if (previous.closed) throw new Error(`${previous.index} is closed: open it first`);
  options.signal.throwIfAborted();
  const actions = swapActions(alias, current.index, previous.index);
  await moveAlias(client, alias, previous.index, actions, { stallMs: STALL_MS, ...options });
  return previous.index;
}
