import { codePoints } from '../util/unicode.js';

/** Separators, which people confuse or forget. They are not compared, here and in mappings/packages.json. */
const SEPARATORS = /[-_. ]/g;

/**
 * The maximum distance of names that are easily mistaken for `name`. It depends on the number of compared
 * characters: one edit changes a short name more. Lower-casing, which the index does, keeps the number.
 */
export function maxDistance(name: string): 0 | 1 | 2 {
  const { length } = codePoints(name.replace(SEPARATORS, ''));
  if (length <= 2) return 0;
  return length <= 5 ? 1 : 2;
}
