import { DatasetError } from '../dataset-error.js';
import type { Documents } from '../documents/documents.js';
import { readWholeLines } from '../documents/lines.js';
import { line, type Format, type Item } from './format.js';

/** How pages and JSON begin, and no name does. */
const OTHER_FORMAT = /^\s*[<{[]/;

const EXPECTED = 'expected a name, or a name and a version';

/**
 * One package a line: its name, or its name and version, separated by white space, as scripts print them. Blank lines are
 * ignored; of a repeated name the last line counts. There is no specification. Like a CSV, a list that does not end with a line
 * end counts as cut off.
 */
export const lines: Format = {
  place: line,
  replaces: () => true,
  async *read(documents: Documents): AsyncGenerator<Item[]> {
    const document = await documents.open();
    let isFirst = true;
    for await (const { first, texts, invalid } of readWholeLines(document.text())) {
      const items: Item[] = [];
      for (const [i, text] of texts.entries()) {
        const [name = '', version, ...others] = text.trim().split(/\s+/);
        const at = first + i;
        if (name === '') continue;
        if (isFirst && OTHER_FORMAT.test(text)) throw new DatasetError(`line ${at}: ${EXPECTED}`);
        isFirst = false;
        if (others.length > 0) items.push({ at, reason: EXPECTED });
        else items.push({ at, name, version, isLossy: invalid.has(i) });
      }
      yield items;
    }
  },
};
