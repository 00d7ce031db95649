import { DatasetError } from '../dataset-error.js';
import type { Documents } from '../documents/documents.js';
import { readLines } from '../documents/lines.js';
import type { Format, ListedPackage } from './format.js';
import { isObject, nameIn, textIn } from './members.js';

/**
 * One JSON object a line (https://jsonlines.org, also called NDJSON), with members that are called like the columns of the CSV;
 * others are ignored. Real lists have a byte order mark, blank lines, or no line end after the last object.
 */
export const jsonl: Format = {
  columns: ['package_no', 'version', 'url', 'weight'],
  async *read(documents: Documents): AsyncGenerator<ListedPackage[]> {
    const document = await documents.open(documents.urls[0]);
    for await (const batch of readLines(document.text(), { lastLineMayBeOpen: true })) {
      yield batch
        .filter(({ text }) => text.trim() !== '')
        .map(({ no, text }) => toPackage(text, `line ${no}`));
    }
  },
};

/** @throws {DatasetError} */
function toPackage(text: string, place: string): ListedPackage {
  const object = parse(text, place);
  if (!isObject(object)) throw new DatasetError(`${place}: expected a JSON object`);
  return {
    name: nameIn(object['name'], `${place}: name`),
    no: textIn(object['package_no'], `${place}: package_no`),
    version: textIn(object['version'], `${place}: version`),
    url: textIn(object['url'], `${place}: url`),
    weight: textIn(object['weight'], `${place}: weight`),
  };
}

function parse(text: string, place: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    const reason = text.startsWith('<') ? 'this is an HTML or XML page' : (cause as Error).message;
    throw new DatasetError(`${place}: expected a JSON object: ${reason}`, { cause });
  }
}
