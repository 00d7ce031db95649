import xxhash from 'xxhash-wasm';
import { NumberList } from '../../src/lists/number-list.js';
import type { HashedPackages } from '../../src/lists/weights.js';
import { canonicalName, type NameRule } from '../../src/util/name-rule.js';

/** Packages with these names. @param hash by default one of 32 bits. */
export async function hashedPackages(
  names: readonly string[],
  rule: NameRule = 'exact',
  hash?: (name: string) => number,
): Promise<HashedPackages> {
  const hashes = await xxhash();
  const canonicalOf = (name: string) => canonicalName(rule, name);
  const hashOf = (name: string) => (hash ?? ((text) => hashes.h32(text)))(canonicalOf(name));
  const nameHashes = new NumberList();
  for (const name of names) nameHashes.push(hashOf(name));
  nameHashes.sort();
  return { canonicalOf, hashOf, nameHashes, repeatedHashes: nameHashes.repeated(Infinity) };
}
