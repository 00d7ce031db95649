import { columnOf, OPTIONAL_FIELDS, withOptional } from '../../snapshot/package-fields.js';
import { quote } from '../../util/reason-text.js';
import { readColumns } from '../readers/csv-records.js';
import { DatasetError } from '../fetch/dataset-error.js';
import { peek } from '../fetch/decompress.js';
import type { Documents } from '../fetch/documents.js';
import type { Format, Item, ListedPackage, ReadOptions } from './list-format.js';

const BASE_FIELDS = ['no', 'name', 'version', 'url'] as const;
const COLUMNS = [...BASE_FIELDS, ...OPTIONAL_FIELDS].map(columnOf);

const NO_URL =
  'line 1: there is no column `url`: add it, or set PACKAGE_URL_TEMPLATE, such as https://registry.example/{name}';

/**
 * The first two characters of a list in JSON. No header of a CSV begins with them. JSON without line breaks would
 * otherwise be reported as a truncated header.
 */
const IS_JSON = /^[{[][\s"{[]/;

/** Invisible characters that editors and spreadsheets add to names of columns. */
const INVISIBLE = /[\s\p{Cc}\p{Cf}]/gu;

/** A CSV (RFC 4180) with a header. Columns are matched by name, in any order. Unknown columns are ignored. */
export const csv: Format = {
  async *read(documents: Documents, { packageUrlTemplate }: ReadOptions): AsyncGenerator<Item[]> {
    const document = await documents.open();
    const { start, chunks } = await peek(document.text());
    if (IS_JSON.test(start.toString('latin1', 0, 2)))
      throw new DatasetError('this is JSON: set DATASET_FORMAT to the format of the list');
    const found = { header: 0, rows: 0 };
    const onHeader = (header: string[]) => {
      found.header++;
      const indexes = indexesIn(header);
      if (!header.includes('url') && packageUrlTemplate === undefined) throw new DatasetError(NO_URL);
      return indexes;
    };
    for await (const rows of readColumns(chunks, onHeader)) {
      found.rows += rows.length;
      yield rows.map((row) => {
        if ('reason' in row) return row;
        const { at, values } = row;
        const [no, name, version, url] = values;
        const item: ListedPackage = { at, no, name, version, url };
        return withOptional(item, (_field, i) => values[BASE_FIELDS.length + i]);
      });
    }
    if (found.header === 0) throw new DatasetError('the dataset is empty');
    if (found.rows === 0) throw new DatasetError('the dataset has a header and no packages');
  },
};

/**
 * @throws {DatasetError} if a known column is repeated, differs in case or has invisible characters, or if there is no
 * column `name`.
 */
function indexesIn(header: string[]): number[] {
  for (const column of header) {
    const known = COLUMNS.find((name) => name === column.replace(INVISIBLE, '').toLowerCase());
    if (known !== undefined && !header.includes(known)) {
      throw new DatasetError(`line 1: rename the column ${quote(column)} to \`${known}\``);
    }
  }
  const repeated = COLUMNS.find((name) => header.indexOf(name) !== header.lastIndexOf(name));
  if (repeated !== undefined) throw new DatasetError(`line 1: there are two columns \`${repeated}\``);
  if (!header.includes('name')) {
    const found = `the header has no column \`name\`: ${quote(header.join())}`;
    throw new DatasetError(`line 1: ${found}. Separate fields with commas, or set DATASET_FORMAT`);
  }
  return COLUMNS.map((name) => header.indexOf(name));
}
