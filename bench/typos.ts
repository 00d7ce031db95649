import { integer, pick } from '../test/fixtures/random.js';
import { codePoints } from '../src/util/unicode.js';

const ALPHABET = Array.from('abcdefghijklmnopqrstuvwxyz0123456789');
const SEPARATORS = ['', '-', '_', '.'];

/** A name with other separators, or with one or two edits. */
export function typo(random: () => number, name: string): string {
  for (;;) {
    const characters = codePoints(name);
    if (random() < 0.2) {
      const other = name.replace(/[-_.]/g, () => pick(random, SEPARATORS));
      if (other !== name) return other;
    }
    for (let edits = integer(random, 1, 2); edits > 0; edits--) {
      const at = integer(random, 0, characters.length - 1);
      const kind = integer(random, 0, 3);
      if (kind === 0) characters.splice(at, 0, pick(random, ALPHABET));
      else if (kind === 1) characters.splice(at, 1);
      else if (kind === 2) characters.splice(at, 1, pick(random, ALPHABET));
      else characters.splice(at, 2, ...characters.slice(at, at + 2).reverse());
    }
    const text = characters.join('').trim();
    if (text !== name && text !== '' && codePoints(text).length <= 100) return text;
  }
}
