import { columnOf, withOptional } from '../../snapshot/package-fields.js';
import { parseJson } from '../../util/decode.js';
import { quote } from '../../util/reason-text.js';
import { DatasetError } from '../fetch/dataset-error.js';
import type { Documents } from '../fetch/documents.js';
import { mapLines, readLines } from '../readers/text-lines.js';
import { isObject, type Format, type Item, type ListedPackage } from './list-format.js';

/**
 * One JSON object a line (https://jsonlines.org, also called NDJSON), with members named like the columns of the CSV.
 * Other members are ignored. Real lists may have a byte order mark, blank lines, or no line end after the last object.
 */
export const jsonl: Format = {
  async *read(documents: Documents): AsyncGenerator<Item[]> {
    const document = await documents.open();
    for await (const rows of readObjects(document.text())) {
      yield rows.map((row) => {
        if (row.reason !== undefined) return row;
        const { at, object, isLossy } = row;
        const { name, package_no: no, version, url } = object;
        return withOptional<ListedPackage>(
          { at, name, no, version, url, isLossy },
          (field) => object[columnOf(field)],
        );
      });
    }
  },
};

/** Reads the objects of JSON lines. @throws {DatasetError} if the first line belongs to another format. */
export function readObjects(source: AsyncIterable<Buffer>) {
  let isFirst = true;
  return mapLines(readLines(source), (text, at, isLossy) => {
    if (text.trim() === '') return undefined;
    const object = parseJson(text);
    if (isFirst && !isObject(object) && !text.trimStart().startsWith('{'))
      throw new DatasetError(`line ${at}: ${NO_OBJECT}: ${describe(text)}`);
    isFirst = false;
    return isObject(object) ? { at, object, text, isLossy } : { at, reason: `${NO_OBJECT}: ${quote(text)}` };
  });
}

const NO_OBJECT = 'expected one JSON object a line';

function describe(text: string): string {
  return text.trimStart().startsWith('<') ? 'this is an HTML or XML page' : quote(text);
}
