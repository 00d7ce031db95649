import { codePoints } from '../unicode.js';

/** What `fold` leaves out: the separators that people confuse or forget. The index does the same (mappings/packages.json). */
const SEPARATORS = /[-_. ]/g;

/** U+0130, the one code point that JavaScript lower-cases to two and Lucene to one. */
const DOTTED_CAPITAL_I = '\u0130';

/** A name in lower case, by code point, without separators: names with equal folds are told apart by these alone. */
export function fold(name: string): string {
  return codePoints(name.replace(SEPARATORS, ''))
    .map((character) => (character === DOTTED_CAPITAL_I ? 'i' : character.toLowerCase()))
    .join('');
}

/** The distance up to which names are easily mistaken for one another: short names differ much by one character. */
export function maxDistance(folded: string): 0 | 1 | 2 {
  const { length } = codePoints(folded);
  if (length <= 2) return 0;
  return length <= 5 ? 1 : 2;
}
