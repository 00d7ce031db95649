import Parser from 'csv-stream/lib/parser.js';
import { columnOf } from '../../snapshot/package-fields.js';
import { quote } from '../../util/reason-text.js';
import { DatasetError } from '../fetch/dataset-error.js';
import { BARE_RETURNS, hasBareReturns, NOT_UTF8, readLines, REPLACEMENT, type Lines } from './text-lines.js';

/** One record: its fields, or the reason why it is invalid. `line` is the number of its first line, from 1. */
export type CsvRecord = { line: number; fields: string[] } | { line: number; reason: string };

/** Maximum length of a line, in bytes. A file with a longer line is rejected as not CSV. This limits memory. */
const MAX_LINE_BYTES = 1024 * 1024;

/** Maximum number of lines of one record. A quote that is not closed within them is an error. */
const MAX_RECORD_LINES = 100;

const FIELD = '(?:"[^"]*(?:""[^"]*)*"|[^",\\r]*)';
/**
 * A complete record, without its last line feed. `COMPLETE` and `OPEN` take linear time, because a field can match in
 * only one way.
 */
const COMPLETE = new RegExp(`^${FIELD}(?:,${FIELD})*\\r?$`);
/** The beginning of a record whose last quoted field is not closed yet. */
const OPEN = new RegExp(`^(?:${FIELD},)*"[^"]*(?:""[^"]*)*$`);

/** A line before the header that says how fields are separated, such as `sep=,`. */
const SEPARATOR = /^"?sep=.?"?\r?$/i;

const NEVER_CLOSED = 'a quote is opened and never closed';
const NOT_CLOSED_SOON = `a quote is opened and not closed within ${MAX_RECORD_LINES} lines or ${MAX_LINE_BYTES} bytes`;
const CUT_OFF = 'the last record does not end with a line end, so the file may be cut off';

/**
 * Reads RFC 4180 CSV in UTF-8, in batches of records; the header row is the first record. A record with bad quoting is
 * yielded with the reason, and reading continues with the next line. So is a record with invalid UTF-8, unless only its
 * description has some: U+FFFD replaces it there.
 * @throws {DatasetError} for a line that is longer than `MAX_LINE_BYTES`, or for a first line such as `sep=,`.
 */
export async function* readCsv(source: AsyncIterable<Buffer>): AsyncGenerator<CsvRecord[]> {
  const reader = new RecordReader();
  for await (const lines of readLines(source, MAX_LINE_BYTES, ', so this is not CSV'))
    yield reader.read(lines);
  yield reader.end();
}

/**
 * The values of some columns of a row: text in a CSV, any type in JSON lines, and undefined if the column does not
 * exist.
 */
export interface Values {
  at: number;
  values: unknown[];
}

/** A row of a document, or the reason why it is invalid. */
export type Row = Values | { at: number; reason: string };

/**
 * Reads some columns of a CSV.
 * @param indexesOf returns the index of each of these columns in the header; -1 for a missing column.
 */
export async function* readColumns(
  source: AsyncIterable<Buffer>,
  indexesOf: (header: string[]) => number[],
): AsyncGenerator<Row[]> {
  let width = 0;
  let indexes: number[] | undefined;
  for await (const records of readCsv(source)) {
    const rows: Row[] = [];
    for (const record of records) {
      const { line: at } = record;
      if (indexes === undefined) {
        if ('reason' in record) throw new DatasetError(`line ${at} (the header): ${record.reason}`);
        indexes = indexesOf(record.fields);
        width = record.fields.length;
      } else if ('reason' in record) rows.push({ at, reason: record.reason });
      else if (record.fields.length !== width)
        rows.push({ at, reason: `${record.fields.length} fields instead of ${width}` });
      else rows.push({ at, values: indexes.map((index) => record.fields[index]) });
    }
    yield rows;
  }
}

/** Joins lines into records, and rejects records with errors that csv-stream's parser does not detect. */
class RecordReader {
  readonly #fields: string[] = [];
  readonly #parser = new Parser({ columns: [], enclosedChar: '"', escapeChar: '"' });
  readonly #records: CsvRecord[] = [];
  /** Index of the column whose invalid UTF-8 is replaced; undefined before the header, -1 without this column. */
  #lossyColumn: number | undefined;
  /** Number of lines read. */
  #line = 0;
  /**
   * The lines of the open record so far, each with its line feed; empty without an open record. A record is open until
   * its last quoted field is closed.
   */
  #open = '';
  #openLine = 0;
  /** Whether a line of the current record is not valid UTF-8. */
  #isLossy = false;

  constructor() {
    this.#parser.on('column', (_name, text: string) => this.#fields.push(text));
  }

  /** @returns the records that end within these lines. */
  read({ texts, invalid, isUnterminated }: Lines): CsvRecord[] {
    for (const [i, line] of texts.entries()) {
      if (!isUnterminated) {
        this.#read(line, invalid.has(i));
        continue;
      }
      this.#closeOpen();
      this.#refuse(++this.#line, hasBareReturns(line) ? BARE_RETURNS : CUT_OFF);
    }
    return this.#records.splice(0);
  }

  end(): CsvRecord[] {
    this.#closeOpen();
    return this.#records.splice(0);
  }

  #read(line: string, isLossy: boolean): void {
    this.#line++;
    if (this.#line === 1 && SEPARATOR.test(line))
      throw new DatasetError(`line 1: remove ${quote(withoutReturn(line))}, which only spreadsheets read`);
    if (this.#open === '') [this.#openLine, this.#isLossy] = [this.#line, false];
    this.#isLossy ||= isLossy;
    if (this.#open === '' && !line.includes('"')) this.#readUnquoted(line);
    else this.#readQuoted(line);
  }

  /** Splits a line without quotes at its commas, five times as fast as the parser. Most lines have no quotes. */
  #readUnquoted(line: string): void {
    const record = withoutReturn(line);
    if (record.includes('\r')) this.#refuse(this.#line, 'a carriage return outside quotes');
    else this.#add(record.split(','));
  }

  #readQuoted(line: string): void {
    // The added quote replaces the earlier lines of the open record, so only the new line is checked.
    const text = this.#open === '' ? line : `"${line}`;
    this.#open += `${line}\n`;
    if (COMPLETE.test(text)) {
      // The parser strips a carriage return at the end of the last field, even if the field is quoted. The added comma
      // appends an empty last field, which is removed again.
      this.#parser.parse(`${withoutReturn(this.#open.slice(0, -1))},\n`);
      this.#open = '';
      this.#fields.pop();
      this.#add(this.#fields.splice(0));
    } else if (!OPEN.test(text)) {
      this.#giveUpOpen('bad quoting');
    } else if (this.#line - this.#openLine + 1 >= MAX_RECORD_LINES || this.#open.length > MAX_LINE_BYTES) {
      this.#giveUpOpen(NOT_CLOSED_SOON);
    }
  }

  /** Adds the record that has ended. */
  #add(fields: string[]): void {
    const lossy = (this.#lossyColumn ??= fields.indexOf(columnOf('description')));
    if (this.#isLossy && fields.some((text, i) => i !== lossy && text.includes(REPLACEMENT)))
      this.#refuse(this.#openLine, NOT_UTF8);
    else this.#records.push({ line: this.#openLine, fields });
  }

  /**
   * Reports the open record as invalid at its first line, and reads its other lines again, as new records. This takes
   * linear time, because only the last of these lines can open a quote. The other lines have an even number of quotes.
   */
  #giveUpOpen(reason: string): void {
    const others = this.#open.split('\n').slice(1, -1);
    this.#open = '';
    this.#line = this.#openLine;
    this.#refuse(this.#line, reason);
    const isLossy = this.#isLossy;
    for (const line of others) this.#read(line, isLossy);
  }

  /** Gives up the open record, if there is one: its quote can no longer be closed. */
  #closeOpen(): void {
    if (this.#open !== '') this.#giveUpOpen(NEVER_CLOSED);
  }

  #refuse(line: number, reason: string): void {
    this.#records.push({ line, reason });
  }
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}
