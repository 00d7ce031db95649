import { DatasetError } from '../dataset-error.js';
import type { Documents } from '../documents/documents.js';
import { readLines } from '../documents/lines.js';
import { NameTable } from '../documents/name-table.js';
import type { Format, ListedPackage } from './format.js';
import { packagesOf } from './packages-of.js';

/** How pages and JSON begin, and no name does. */
const OTHER_FORMAT = /^\s*[<{[]/;

/**
 * One package a line: its name, or its name and version, separated by white space, as scripts print them. Blank lines are
 * ignored; of a repeated name the last line counts. There is no specification. Like a CSV, a list that does not end with a line
 * end counts as cut off.
 */
export const lines: Format = {
  columns: ['version'],
  async *read(documents: Documents): AsyncGenerator<ListedPackage[]> {
    const document = await documents.open(documents.urls[0]);
    const versions = await NameTable.create();
    for await (const batch of readLines(document.text(), { lastLineMayBeOpen: false })) {
      for (const { no, text } of batch) {
        const [name = '', version = '', ...others] = text.trim().split(/\s+/);
        if (others.length > 0 || (versions.size === 0 && OTHER_FORMAT.test(text))) {
          throw new DatasetError(`line ${no}: expected a name, or a name and a version`);
        }
        if (name !== '') versions.push(versions.add(name), version);
      }
    }
    yield* packagesOf(versions);
  },
};
