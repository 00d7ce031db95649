import { isUtf8 } from 'node:buffer';
import { DatasetError } from '../fetch/dataset-error.js';
import { NOT_UTF8 } from './text-lines.js';
import type { FileReader } from './tar.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const LF = 0x0a;

/** Maximum size of each column name, and of each value that is read, in bytes. */
const MAX_VALUE_BYTES = 2 ** 16;

/** A column that may be missing. Its values may have invalid UTF-8 and any length; only their beginning is read. */
export const PROSE = 'description';

/** The values of a record; `at` is its number (the header is number 1). NULL is read as an empty string. */
type CopyRecord = { at: number; values: string[] } | { at: string; reason: string };

/**
 * Reads some columns of a CSV with a header, written by PostgreSQL (`COPY … WITH (FORMAT csv, HEADER)`,
 * https://www.postgresql.org/docs/current/sql-copy.html). Values of other columns, such as readmes, may have any
 * length, because they are not held in memory. `csv-records.ts` holds whole records, so it limits their length.
 */
export class CopyReader implements FileReader {
  /** Number of records, with the header. */
  #count = 0;
  /** Number of columns; undefined until the header has been read. */
  #width: number | undefined;
  /** For each column of the file, its index in the values of a record; undefined if the column is not wanted. */
  #indexes: (number | undefined)[] = [];
  /** The record that is being read, and the index of its current field. */
  #record: string[] = [];
  #field = 0;
  /** The bytes of the current field so far, as Latin-1; empty if its column is not wanted. */
  #value = '';
  #isQuoted = false;
  #isInvalid = false;
  /**
   * Whether the last byte was a quote that ended a quoted text. If the next byte is a quote, too, the two stand for one
   * quote in the text.
   */
  #isAfterQuote = false;
  #lastByte: number | undefined = LF;

  /**
   * @param name of the file, for messages.
   * @param columns names of the columns to read, in the order of the values.
   * @param onRecord called with each record after the header.
   */
  constructor(
    private readonly name: string,
    private readonly columns: readonly string[],
    private readonly onRecord: (record: CopyRecord) => void,
  ) {}

  /** @throws {DatasetError} if a column is missing, or a value is too long. */
  read(chunk: Buffer): void {
    for (let start = 0; start < chunk.length;) {
      const end = this.#isQuoted ? chunk.indexOf(QUOTE, start) : endOfText(chunk, start);
      const text = chunk.subarray(start, end === -1 ? chunk.length : end);
      if (text.length > 0) this.#add(text);
      if (end === -1) break;
      this.#see(chunk[end] as number);
      start = end + 1;
    }
    this.#lastByte = chunk.at(-1) ?? this.#lastByte;
  }

  /** @throws {DatasetError} if the file is empty, or ends within a record. */
  end(): void {
    if (this.#count === 0) this.#fail('expected a header');
    if (this.#isQuoted || this.#lastByte !== LF) this.#fail(`record ${this.#count + 1}: cut off`);
  }

  get #isProse(): boolean {
    return this.columns[this.#indexes[this.#field] ?? -1] === PROSE;
  }

  #add(text: Buffer): void {
    this.#isAfterQuote = false;
    if (this.#width !== undefined && this.#indexes[this.#field] === undefined) return;
    if (this.#value.length <= MAX_VALUE_BYTES) this.#value += text.toString('latin1');
    if (this.#value.length > MAX_VALUE_BYTES && !this.#isProse)
      this.#fail(`record ${this.#count + 1}: a value is longer than ${MAX_VALUE_BYTES} bytes`);
  }

  #see(byte: number): void {
    if (byte === QUOTE) {
      if (this.#isAfterQuote) this.#add(Buffer.of(QUOTE));
      this.#isAfterQuote = this.#isQuoted;
      this.#isQuoted = !this.#isQuoted;
      return;
    }
    this.#isAfterQuote = false;
    this.#endField();
    if (byte === LF) this.#endRecord();
  }

  #endField(): void {
    const index = this.#width === undefined ? this.#field : this.#indexes[this.#field];
    if (index !== undefined) {
      const bytes = Buffer.from(this.#value, 'latin1');
      this.#isInvalid ||= !this.#isProse && !isUtf8(bytes);
      this.#record[index] = bytes.toString();
      this.#value = '';
    }
    this.#field++;
  }

  #endRecord(): void {
    const at = ++this.#count;
    if (this.#width === undefined) this.#readHeader(this.#record);
    else if (this.#field !== this.#width) this.#refuse(`${this.#field} fields instead of ${this.#width}`);
    else if (this.#isInvalid) this.#refuse(NOT_UTF8);
    else this.onRecord({ at, values: this.#record });
    this.#isInvalid = false;
    this.#record = [];
    this.#field = 0;
  }

  #readHeader(header: string[]): void {
    for (const [index, column] of this.columns.entries()) {
      const position = header.indexOf(column);
      if (position !== -1) this.#indexes[position] = index;
      else if (column !== PROSE) this.#fail(`expected a column \`${column}\` in its header`);
    }
    this.#width = header.length;
  }

  #refuse(reason: string): void {
    this.onRecord({ at: `${this.name}: record ${this.#count}`, reason });
  }

  #fail(reason: string): never {
    throw new DatasetError(`${this.name}: ${reason}`);
  }
}

/** The position of the next comma, quote or line feed; -1 if there is none. */
function endOfText(chunk: Buffer, start: number): number {
  for (let i = start; i < chunk.length; i++) {
    const byte = chunk[i];
    if (byte === COMMA || byte === QUOTE || byte === LF) return i;
  }
  return -1;
}
