import type { Client } from '@elastic/elasticsearch';
import {
  applyActions,
  flipActions,
  isMissing,
  whileServed,
  type Action,
  type Flip,
} from './alias-actions.js';
import { isRetryable, retry, type RetryOptions } from './retry.js';

/** The outcome of a flip is unknown. */
export class FlipError extends Error {
  override readonly name = 'FlipError';

  constructor(cause: unknown) {
    super('Elasticsearch stopped responding during the flip: it is unknown which snapshot is served', {
      cause,
    });
  }
}

/**
 * Serves a finished index (`flipActions`). Has no effect if the alias does not point to `from`, or if the index or its
 * changes were deleted. Retries while Elasticsearch is unavailable.
 * @throws {FlipError}
 * @throws {Error} if the flip had no effect.
 */
export async function flip(client: Client, alias: string, what: Flip, options: RetryOptions): Promise<void> {
  await moveAlias(client, alias, what.to, flipActions(alias, what), options);
}

/** Has no effect if a precondition of the actions (`must_exist`) is not met. @throws like `flip`. */
export async function moveAlias(
  client: Client,
  alias: string,
  to: string,
  actions: Action[],
  options: RetryOptions,
): Promise<void> {
  const attempt = async () => {
    try {
      await client.indices.updateAliases({ actions });
    } catch (error) {
      // The alias may have moved, although the response was lost or a retry failed. An `_aliases` request checks this
      // on the master node, because other nodes may have an outdated state.
      if (!(await applyActions(client, whileServed(alias, to)))) throw error;
    }
  };
  try {
    await retry(attempt, options);
  } catch (cause) {
    if (isMissing(cause)) {
      throw new Error('another rebuild or a rollback changed what is served meanwhile', { cause });
    }
    if (!isRetryable(cause) && !options.signal.aborted) throw cause;
    throw new FlipError(cause);
  }
}
