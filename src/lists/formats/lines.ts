import { DatasetError } from '../fetch/dataset-error.js';
import type { Documents } from '../fetch/documents.js';
import { mapLines, readWholeLines } from '../readers/text-lines.js';
import type { Format, Item } from './list-format.js';

/** The beginning of a web page or of JSON. No name begins like this. */
const OTHER_FORMAT = /^\s*[<{[]/;

const EXPECTED = 'expected a name, or a name and a version';

/**
 * One package a line: a name, or a name and a version, separated by white space. Blank lines and comments, which begin
 * with `#`, are ignored. If a name is repeated, the last line wins. There is no specification. A list that does not end
 * with a line end is rejected, because it may be cut off.
 */
export const lines: Format = {
  replaces: () => true,
  async *read(documents: Documents): AsyncGenerator<Item[]> {
    const document = await documents.open();
    let isFirst = true;
    yield* mapLines(readWholeLines(document.text()), (text, at, isLossy) => {
      const [name = '', version, ...others] = text.trim().split(/\s+/);
      if (name === '' || name.startsWith('#')) return undefined;
      if (isFirst && OTHER_FORMAT.test(text)) throw new DatasetError(`line ${at}: ${EXPECTED}`);
      isFirst = false;
      return others.length > 0 ? { at, reason: EXPECTED } : { at, name, version, isLossy };
    });
  },
};
