import type { Client } from '@elastic/elasticsearch';
import { flip, indexOf } from './indices.js';
import { previousAliasOf } from './index-names.js';

/** There is nothing to go back to. */
export class NoPreviousGeneration extends Error {
  override readonly name = 'NoPreviousGeneration';
}

/**
 * Lets the alias point to the generation before the one that is served; asked for again, it goes back. To be called by
 * who has the lock.
 * @returns the index that is served now.
 * @throws {NoPreviousGeneration}
 */
export async function rollBack(client: Client, alias: string): Promise<string> {
  const current = await indexOf(client, alias);
  const previous = await indexOf(client, previousAliasOf(alias));
  if (current === undefined || previous === undefined) {
    throw new NoPreviousGeneration(`there is no generation before ${current ?? 'the first one'}`);
  }
  await flip(client, alias, current, previous);
  return previous;
}
