import { errors, type Client, type estypes } from '@elastic/elasticsearch';
import { isSnapshotOf, loadingAliasOf, previousAliasOf } from '../../snapshot/index-names.js';
import { isRetryable, retry, type RetryOptions } from '../retry.js';

/**
 * Moves aliases. Every change is one `_aliases` request, which Elasticsearch applies completely or not at
 * all, and which contains its own precondition (`must_exist`): a process that was suspended for hours and
 * lost its lock without noticing cannot change what another one serves.
 */

/** It is unknown whether a flip took effect, or it did and the alias is ambiguous now. */
export class FlipError extends Error {
  override readonly name = 'FlipError';
}

const UNKNOWN = 'Elasticsearch stopped responding during the flip: it is unknown which snapshot is served';

/** How long a flip that succeeded waits to see what is served, in milliseconds. */
const LOOK_MS = 60_000;

interface Flip {
  /** The index that is served; undefined before the first flip. */
  from: string | undefined;
  /** The index that was served before it. */
  previous?: string | undefined;
  /** The finished index. */
  to: string;
  /** The index of its changes, if there is one. */
  changes?: string | undefined;
}

/**
 * Serves a finished index instead of `from`, which becomes the previous snapshot if a rebuild of this registry created it: an
 * operator may have moved the alias to another index. Has no effect if the alias does not point to `from`, or if the index or
 * its changes were deleted. Retries while Elasticsearch is unavailable.
 * @throws {FlipError} {Error} if what is served has not changed.
 */
export async function flip(
  client: Client,
  alias: string,
  { from, previous, to, changes }: Flip,
  options: RetryOptions,
): Promise<void> {
  const name = previousAliasOf(alias);
  const finished = [to, ...(changes === undefined ? [] : [changes])].map((index): Action => ({
    remove: { index, alias: loadingAliasOf(index), must_exist: true },
  }));
  const replaced: Action[] = from === undefined ? [] : [{ remove: { index: from, alias, must_exist: true } }];
  const isKept = from !== undefined && isSnapshotOf(alias, from);
  const kept: Action[] = isKept
    ? [
        ...[`${alias}-*`, previous ?? from].map((index): Action => ({
          remove: { index, alias: name, must_exist: false },
        })),
        { add: { index: from, alias: name } },
      ]
    : [];
  await moveAlias(client, alias, to, [...finished, ...replaced, ...kept], options);
}

/**
 * Serves the previous snapshot again; the current one becomes the previous. Has no effect if either changed.
 * @throws {FlipError} {Error} as `flip` does.
 */
export async function swapWithPrevious(
  client: Client,
  alias: string,
  current: string,
  previous: string,
  options: RetryOptions,
): Promise<void> {
  const name = previousAliasOf(alias);
  const actions: Action[] = [
    { remove: { index: current, alias, must_exist: true } },
    { remove: { index: previous, alias: name, must_exist: true } },
    { add: { index: current, alias: name } },
  ];
  await moveAlias(client, alias, previous, actions, options);
}

type Action = estypes.IndicesUpdateAliasesAction;

async function moveAlias(
  client: Client,
  alias: string,
  to: string,
  before: Action[],
  options: RetryOptions,
): Promise<void> {
  // An alias has one write index at most: of two concurrent first rebuilds, one fails.
  const add: Action = { add: { index: to, alias, is_write_index: true } };
  const attempt = async () => {
    try {
      await client.indices.updateAliases({ actions: [...before, add] });
    } catch (error) {
      // The response may have been lost, or the request retried, after the alias had moved.
      if (!(await isServed(client, alias, to))) throw error;
    }
  };
  try {
    await retry(attempt, options);
  } catch (cause) {
    if (isMissing(cause)) {
      throw new Error('another rebuild or a rollback changed what is served meanwhile', { cause });
    }
    if (!isRetryable(cause) && !options.signal.aborted) throw cause;
    throw new FlipError(UNKNOWN, { cause });
  }
  // Not by the signal of the step: the alias has moved, even if the lock has been lost since.
  const look = { ...options, signal: AbortSignal.timeout(LOOK_MS) };
  const served = await retry((signal) => client.indices.getAlias({ name: alias }, { signal }), look).catch(
    (cause: unknown) => {
      throw new FlipError(UNKNOWN, { cause });
    },
  );
  const others = Object.keys(served).filter((index) => index !== to);
  // Without it, a later rebuild has replaced it: this process may have been suspended.
  if (to in served && others.length > 0) {
    const cause = new Error(others.join(', '));
    throw new FlipError(`the new snapshot is served, but ${alias} points to other indices, too`, { cause });
  }
}

/**
 * Whether the alias points to an index, according to the master: other nodes may not have applied its latest decision, and
 * would respond with what they know.
 */
async function isServed(client: Client, alias: string, index: string): Promise<boolean> {
  const actions: Action[] = [
    { remove: { index, alias, must_exist: true } },
    { add: { index, alias, is_write_index: true } },
  ];
  try {
    await client.indices.updateAliases({ actions });
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** Whether an alias or an index of a precondition does not exist. */
function isMissing(error: unknown): boolean {
  return error instanceof errors.ResponseError && error.statusCode === 404;
}
