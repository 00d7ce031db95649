import { codePoints } from '../util/unicode.js';

/** Separators, which people confuse or forget. Distances ignore them, as `fold` in mappings/packages.json does. */
const SEPARATORS = /[-_. ]/g;

/** One edit changes a short name more. The index also lower-cases names, which does not change the length. */
export function maxDistance(name: string): 0 | 1 | 2 {
  const length = lengthWithoutSeparators(name);
  if (length <= 2) return 0;
  return length <= 5 ? 1 : 2;
}

export function lengthWithoutSeparators(name: string): number {
  return codePoints(name.replace(SEPARATORS, '')).length;
}
