import { codePoints } from '../unicode.js';

/** What names are compared without: the separators that people confuse or forget. The index leaves out the same (mappings/packages.json). */
const SEPARATORS = /[-_. ]/g;

/**
 * The distance up to which other names are easily mistaken for `name`. It goes by the characters that are compared: short
 * names differ much by one of them. Lower case, which the index takes care of, has as many.
 */
export function maxDistance(name: string): 0 | 1 | 2 {
  const { length } = codePoints(name.replace(SEPARATORS, ''));
  if (length <= 2) return 0;
  return length <= 5 ? 1 : 2;
}
