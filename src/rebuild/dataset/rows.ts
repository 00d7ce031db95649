import { MAX_NAME_BYTES, type PackageEntry } from '../../snapshot/package-document.js';
import { readCsv } from './csv.js';
import { DatasetError } from './dataset-error.js';
import { quote } from '../process/reason-text.js';

/** One row of the dataset: the package, or why the row is invalid. `line` counts from 1, the header. */
export type Row = { line: number; entry: PackageEntry } | { line: number; reason: string };

/** The column of the package number. Without it, numbers are positions. */
export const NUMBER_COLUMN = 'package_no';

/** The column of the weight, such as downloads. Without it, packages have none. */
export const WEIGHT_COLUMN = 'weight';

const COLUMNS = [NUMBER_COLUMN, 'name', 'version', 'url', WEIGHT_COLUMN];

/** How an object or an array with members begins, and no header does. */
const IS_JSON = /^[{[][\s"{[]/;

/** What editors and spreadsheets add to a column without showing it. */
const INVISIBLE = /[\s\p{Cc}\p{Cf}]/gu;

/** Version of a row without one. */
const DEFAULT_VERSION = 'latest';

/** Maximum length of a version in UTF-8 bytes, by the contract. A longer one makes the row invalid. */
const MAX_VERSION_BYTES = 256;

/**
 * Maximum length of a URL in UTF-8 bytes, by the contract, also of one made from the template. A longer one makes the
 * row invalid: a response holds up to 500 URLs.
 */
const MAX_URL_BYTES = 2048;

/** Characters that URL parsers drop or encode: clients would follow another URL than the one they were shown. */
const HAS_CONTROL_CHARACTER = /\p{Cc}/u;

/** A stray quote makes a value of all lines up to the next one. */
const HAS_LINE_BREAK = /[\n\r]/;
const STRAY_QUOTE = 'there may be a stray quote in this line';

/** Other schemes, such as `javascript:`, would become links on pages that show the packages. */
const IS_HTTP = /^https?:\/\//i;

/** Characters of names that `encodeURIComponent` encodes although a path may contain them (RFC 3986, section 3.3): `/`, `@`, `+`. */
const ALLOWED_IN_PATH = /%(?:2F|40|2B)/g;

/** URL parsers resolve these segments, even written as `%2E`: the link would lead to another page. */
const HAS_DOT_SEGMENT = /^[^?#]*\/\.{1,2}([/?#]|$)/;

/**
 * Reads the rows of a dataset in batches, each row checked by itself (not against the others).
 * @param urlTemplate `https://…/{name}`, for rows without a `url`.
 * @param onHeader called with the names of the columns.
 * @throws {DatasetError} for a file without a usable header.
 */
export async function* readRows(
  text: AsyncIterable<Buffer>,
  urlTemplate: string | undefined,
  onHeader: (columns: readonly string[]) => void = () => undefined,
): AsyncGenerator<Row[]> {
  let toRow: RowParser | undefined;
  for await (const records of readCsv(assertCsv(text))) {
    const rows: Row[] = [];
    for (const record of records) {
      if (toRow === undefined) {
        if (!('fields' in record))
          throw new DatasetError(`line ${record.line} (the header): ${record.reason}`);
        toRow = new RowParser(record.fields, urlTemplate);
        onHeader(record.fields);
      } else if ('fields' in record) rows.push(toRow.parse(record.line, record.fields));
      else rows.push(toRow.skip(record.line, record.reason));
    }
    yield rows;
  }
  if (toRow === undefined) throw new DatasetError('the dataset is empty');
}

/** JSON without line breaks would be a header that is cut off. @throws {DatasetError} */
async function* assertCsv(text: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isFirst = true;
  for await (const chunk of text) {
    if (isFirst && IS_JSON.test(chunk.toString('latin1', 0, 2)))
      throw new DatasetError('this is JSON: set DATASET_FORMAT to the format of the list');
    isFirst = false;
    yield chunk;
  }
}

class RowParser {
  readonly #width: number;
  readonly #no: number | undefined;
  readonly #name: number;
  readonly #version: number | undefined;
  readonly #url: number | undefined;
  readonly #weight: number | undefined;
  /** Rows seen so far: the package number if there is no such column. */
  #position = 0;

  constructor(
    header: string[],
    private readonly urlTemplate: string | undefined,
  ) {
    for (const column of header) {
      const known = COLUMNS.find((name) => name === column.replace(INVISIBLE, '').toLowerCase());
      if (known !== undefined && !header.includes(known)) {
        throw new DatasetError(`line 1: rename the column ${quote(column)} to \`${known}\``);
      }
    }
    const column = (name: string) => {
      const index = header.indexOf(name);
      if (header.includes(name, index + 1))
        throw new DatasetError(`line 1: there are two columns \`${name}\``);
      return index === -1 ? undefined : index;
    };
    const name = column('name');
    if (name === undefined) {
      throw new DatasetError(`line 1: the header has no column \`name\`: ${describeHeader(header)}`);
    }
    this.#width = header.length;
    this.#name = name;
    this.#no = column(NUMBER_COLUMN);
    this.#version = column('version');
    this.#url = column('url');
    this.#weight = column(WEIGHT_COLUMN);
    if (this.#url === undefined && urlTemplate === undefined) {
      throw new DatasetError(
        'line 1: there is no column `url`: add it, or set PACKAGE_URL_TEMPLATE, such as https://registry.example/{name}',
      );
    }
  }

  parse(line: number, fields: string[]): Row {
    this.#position++;
    if (fields.length !== this.#width) {
      return { line, reason: `${fields.length} fields instead of ${this.#width}` };
    }
    const text = (index: number | undefined) => (index === undefined ? '' : (fields[index] ?? ''));
    const no = this.#no === undefined ? this.#position : positiveInteger(text(this.#no));
    if (no === undefined) {
      return { line, reason: badNumber(NUMBER_COLUMN, text(this.#no), 1) };
    }
    const name = text(this.#name);
    if (name === '') return { line, reason: 'name is empty' };
    if (HAS_LINE_BREAK.test(name)) return { line, reason: `name has a line break: ${STRAY_QUOTE}` };
    if (isLonger(name, MAX_NAME_BYTES)) {
      return { line, reason: `name is longer than ${MAX_NAME_BYTES} bytes` };
    }
    const version = text(this.#version) || DEFAULT_VERSION;
    if (HAS_LINE_BREAK.test(version)) return { line, reason: `version has a line break: ${STRAY_QUOTE}` };
    if (isLonger(version, MAX_VERSION_BYTES)) {
      return { line, reason: `version is longer than ${MAX_VERSION_BYTES} bytes` };
    }
    const made = text(this.#url) === '' ? this.#fromTemplate(name) : undefined;
    const url = made ?? text(this.#url);
    if (url === '') return { line, reason: 'url is empty, and PACKAGE_URL_TEMPLATE is not set' };
    if (isLonger(url, MAX_URL_BYTES)) {
      const origin = made === undefined ? 'url' : 'url made from PACKAGE_URL_TEMPLATE';
      return { line, reason: `${origin} is longer than ${MAX_URL_BYTES} bytes` };
    }
    if (!URL.canParse(url)) return { line, reason: `url ${quote(url)} is not absolute` };
    if (!IS_HTTP.test(url.trimStart())) return { line, reason: `url ${quote(url)} is not http(s)` };
    if (HAS_CONTROL_CHARACTER.test(url)) {
      return { line, reason: `url ${quote(url)} has a control character` };
    }
    if (url !== url.trim()) return { line, reason: `url ${quote(url)} has white space around it` };
    if (HAS_DOT_SEGMENT.test(made ?? '')) {
      return {
        line,
        reason: `name ${quote(name)} gives a url with a \`.\` or \`..\` path segment: ${quote(url)}`,
      };
    }
    if (this.#weight === undefined) return { line, entry: { no, name, version, url } };
    const weight = wholeNumber(text(this.#weight) || '0');
    if (weight === undefined) return { line, reason: badNumber(WEIGHT_COLUMN, text(this.#weight), 0) };
    return { line, entry: { no, name, version, url, weight } };
  }

  /** A row that could not be parsed still counts as a position. */
  skip(line: number, reason: string): Row {
    this.#position++;
    return { line, reason };
  }

  #fromTemplate(name: string): string | undefined {
    return this.urlTemplate
      ?.replaceAll('{name}', () => encodeURIComponent(name))
      .replaceAll('{+name}', () => encodeURIComponent(name).replaceAll(ALLOWED_IN_PATH, decodeURIComponent));
  }
}

/** What the file seems to be, or how to correct the header. */
function describeHeader(header: string[]): string {
  const line = header.join();
  if (line.trimStart().startsWith('<')) return 'this is an HTML page';
  if (/[;\t|]/.test(line)) return 'separate the fields with commas';
  return 'this is not a package dataset, unless DATASET_FORMAT says what it is';
}

/** Whether `text` has more than `bytes` bytes in UTF-8; a code unit has three at most. */
export function isLonger(text: string, bytes: number): boolean {
  return text.length * 3 > bytes && Buffer.byteLength(text) > bytes;
}

function positiveInteger(text: string): number | undefined {
  const value = wholeNumber(text);
  return value === 0 ? undefined : value;
}

/** Why a row is invalid whose text in `column` is not a number from `min`. */
export function badNumber(column: string, text: string, min: number): string {
  return `${column} ${quote(text)} is not a number from ${min} to ${Number.MAX_SAFE_INTEGER} in digits without leading zeros`;
}

/** A number from 0 in digits without leading zeros, if it is exact. */
export function wholeNumber(text: string): number | undefined {
  if (!/^(0|[1-9]\d*)$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}
