import type { Client } from '@elastic/elasticsearch';
import { findGeneration, isReadable } from '../catalog/generation.js';
import { flip } from './indices.js';
import { previousAliasOf } from './index-names.js';

/**
 * Lets the alias point to the generation before the one that is served; asked for again, it goes back. To be called by
 * who has the lock.
 * @returns the index that is served now.
 * @throws {Error} where there is none.
 */
export async function rollBack(client: Client, alias: string): Promise<string> {
  const current = await findGeneration(client, alias);
  const previous = await findGeneration(client, previousAliasOf(alias));
  if (current === undefined || previous === undefined) {
    throw new Error(`there is no generation before ${current?.index ?? 'the first one'}`);
  }
  if (!isReadable(previous)) {
    throw new Error(`${previous.index} was written by another version of the service, which must serve it`);
  }
  await flip(client, alias, current.index, previous.index);
  return previous.index;
}
