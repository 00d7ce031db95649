import { codePoints } from '../../util/unicode.js';

/** Maximum length of cleaned prose, in code points. */
const MAX_LENGTH = 300;

const BLANKS = /[\p{White_Space}\p{Cc}]+/gu;

const ELLIPSIS = '…';

/**
 * Cleans a text that is only shown, such as a description. Runs of white space and control characters become one space,
 * and half a surrogate pair becomes U+FFFD. A text that is too long is cut at its last space, or within a word if it
 * has no space, so that it fits together with the `…` at its end. Cleaning a cleaned text does not change it.
 * @returns empty if there is no text: values that are not strings count as none.
 */
export function cleanProse(value: unknown): string {
  if (typeof value !== 'string') return '';
  const text = value.toWellFormed().replace(BLANKS, ' ').trim();
  if (text.length <= MAX_LENGTH) return text;
  // No code point has more than two code units.
  const characters = codePoints(text.slice(0, 2 * (MAX_LENGTH + 1)));
  if (characters.length <= MAX_LENGTH) return text;
  const space = characters.lastIndexOf(' ', MAX_LENGTH - 1);
  return characters.slice(0, space === -1 ? MAX_LENGTH - 1 : space).join('') + ELLIPSIS;
}
