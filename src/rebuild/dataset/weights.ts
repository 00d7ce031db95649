import type { DatasetFormat } from '../../config/dataset-format.js';
import { MAX_NAME_BYTES } from '../../snapshot/package-document.js';
import { quote } from '../process/reason-text.js';
import type { BadRows } from './bad-rows.js';
import { readCsv } from './csv.js';
import { DatasetError } from './dataset-error.js';
import { peek } from './documents/decompress.js';
import { readLines } from './documents/lines.js';
import { isObject, nameIn, textIn } from './formats/members.js';
import { normalise } from './formats/pypi.js';
import { badNumber, isLonger, wholeNumber, type Row } from './rows.js';
import { WeightTable } from './weight-table.js';

/** How many bytes are searched for the first character. */
const START_BYTES = 1024;

/** The members of a document of weights that have the name and the weight. */
export interface WeightsColumns {
  name: string;
  weight: string;
}

/** A row of a document of weights: its two members, which may have any type, or why it has none. */
type Listed = { line: number; name: unknown; weight: unknown } | { line: number; reason: string };

/** The weights of packages, from a document of their own. */
export class Weights {
  private constructor(
    private readonly table: WeightTable,
    private readonly keyOf: (name: string) => string,
  ) {}

  /**
   * Reads a document: CSV with a header, or JSON lines, told apart by the first character. Of a repeated name, the larger weight
   * counts.
   * @param badRows counts invalid rows.
   * @param format of the dataset, whose names are compared; those of `pypi` after normalisation (PEP 503).
   * @throws {DatasetError} naming the document.
   */
  static async read(
    text: AsyncIterable<Buffer>,
    columns: WeightsColumns,
    format: DatasetFormat,
    badRows: BadRows,
  ): Promise<Weights> {
    const weights = new Weights(await WeightTable.create(), format === 'pypi' ? normalise : (name) => name);
    for await (const invalid of named(weights.#addAll(rowsOf(text, columns), columns))) {
      for (const { line, reason } of invalid) badRows.skip(line, reason);
    }
    if (weights.table.size === 0) throw ofWeights(new DatasetError('the document has no weights'));
    return weights;
  }

  /** Numbers of different names: all, and those that no package of the dataset has. */
  get counts(): { names: number; unknown: number } {
    const { size, known } = this.table;
    return { names: size, unknown: size - known };
  }

  /** Undefined if a package that `join` has seen has one of the names. */
  get warning(): string | undefined {
    const { names, unknown } = this.counts;
    if (unknown < names) return undefined;
    return `no package has the name of a weight, so all weights are 0: WEIGHTS_URL has ${names} other names`;
  }

  /** Whether a package that `join` has seen has a weight other than 0. */
  isWeighed(name: string): boolean {
    return this.table.isWeighed(this.keyOf(name));
  }

  /** Gives each package its weight, 0 if it is missing, whatever the dataset says. */
  async *join(batches: AsyncIterable<Row[]>): AsyncGenerator<Row[]> {
    for await (const rows of batches) {
      for (const row of rows) {
        if ('entry' in row) row.entry.weight = this.table.take(this.keyOf(row.entry.name));
      }
      yield rows;
    }
  }

  /** @returns the invalid rows of each batch. */
  async *#addAll(batches: AsyncIterable<Listed[]>, columns: WeightsColumns) {
    for await (const rows of batches) {
      yield rows.flatMap((row) => {
        const reason = 'reason' in row ? row.reason : this.#add(row, columns);
        return reason === undefined ? [] : [{ line: row.line, reason }];
      });
    }
  }

  /** @returns why a row is invalid, if it is. */
  #add(row: { name: unknown; weight: unknown }, columns: WeightsColumns): string | undefined {
    const texts = textsIn(row, columns);
    if ('reason' in texts) return texts.reason;
    const { name, weight } = texts;
    if (name === '') return `${columns.name} is empty`;
    if (isLonger(name, MAX_NAME_BYTES)) return `${columns.name} is longer than ${MAX_NAME_BYTES} bytes`;
    const value = wholeNumber(weight || '0');
    if (value === undefined) return badNumber(columns.weight, weight, 0);
    this.table.add(this.keyOf(name), value);
    return undefined;
  }
}

/** The members of a row as texts, or the reason why they are none. */
function textsIn(row: { name: unknown; weight: unknown }, columns: WeightsColumns) {
  try {
    return { name: nameIn(row.name, columns.name), weight: textIn(row.weight, columns.weight) ?? '' };
  } catch (error) {
    return { reason: (error as DatasetError).message };
  }
}

/** Adds which document the reason of a failure is about. */
export function ofWeights(error: unknown): unknown {
  if (!(error instanceof DatasetError)) return error;
  return new DatasetError(`WEIGHTS_URL: ${error.message}`, { cause: error });
}

async function* named<T>(source: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* source;
  } catch (error) {
    throw ofWeights(error);
  }
}

async function* rowsOf(source: AsyncIterable<Buffer>, columns: WeightsColumns): AsyncGenerator<Listed[]> {
  const { start, chunks } = await peek(source, START_BYTES);
  yield* /^\s*[{[]/.test(start.toString()) ? readJson(chunks, columns) : readFields(chunks, columns);
}

/** Rows of a CSV. */
async function* readFields(source: AsyncIterable<Buffer>, columns: WeightsColumns): AsyncGenerator<Listed[]> {
  let header: { width: number; name: number; weight: number } | undefined;
  for await (const records of readCsv(source)) {
    const rows: Listed[] = [];
    for (const record of records) {
      const { line } = record;
      if (header === undefined) {
        if ('reason' in record) throw new DatasetError(`line ${line} (the header): ${record.reason}`);
        const { fields } = record;
        const [name, weight] = [indexIn(fields, columns.name), indexIn(fields, columns.weight)];
        header = { width: fields.length, name, weight };
      } else if ('reason' in record) rows.push(record);
      else if (record.fields.length !== header.width) {
        rows.push({ line, reason: `${record.fields.length} fields instead of ${header.width}` });
      } else rows.push({ line, name: record.fields[header.name], weight: record.fields[header.weight] });
    }
    yield rows;
  }
}

/** @throws {DatasetError} unless a header has a column once. */
function indexIn(header: string[], column: string): number {
  const index = header.indexOf(column);
  if (index !== -1 && index === header.lastIndexOf(column)) return index;
  const fault = index === -1 ? 'has no column' : 'has two columns';
  throw new DatasetError(
    `line 1: the header ${fault} ${quote(column)} (WEIGHTS_COLUMNS): ${quote(header.join())}`,
  );
}

/** Rows of JSON lines. */
async function* readJson(source: AsyncIterable<Buffer>, columns: WeightsColumns): AsyncGenerator<Listed[]> {
  for await (const lines of readLines(source, { lastLineMayBeOpen: true })) {
    yield lines
      .filter(({ text }) => text.trim() !== '')
      .map(({ no: line, text }) => {
        const object = parse(text);
        if (!isObject(object)) return { line, reason: `expected one JSON object a line: ${quote(text)}` };
        if (!(columns.name in object))
          return { line, reason: `no member ${quote(columns.name)} (WEIGHTS_COLUMNS): ${quote(text)}` };
        return { line, name: object[columns.name], weight: object[columns.weight] };
      });
  }
}

/** @returns undefined if it is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
