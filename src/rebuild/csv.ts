import { isUtf8 } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Parser from 'csv-stream/lib/parser.js';
import { DatasetError } from './dataset-error.js';

/** One record: its fields, or why it has none. `line` is the line it begins on, from 1. */
export type CsvRecord = { line: number; fields: string[] } | { line: number; reason: string };

/** Maximum length of a line. A file with a longer one is not CSV, and the line is not buffered in memory. */
const MAX_LINE_BYTES = 1024 * 1024;

/** Maximum number of lines of one record. Beyond it, the opening quote counts as a stray one. */
const MAX_RECORD_LINES = 100;

/**
 * Maximum number of records per batch. Consumers process a batch synchronously: 16 KiB of empty lines in one batch, each
 * of them logged as invalid, would block the event loop for a tenth of a second.
 */
const BATCH_RECORDS = 500;

/**
 * Characters parsed between turns of the event loop; csv-stream's parser takes up to 0.3 µs per character.
 * Only records of many lines or of one very long line need more than one turn.
 */
const TURN_CHARACTERS = 8 * 1024;

/** The same for checking the quotes, which takes up to 0.01 µs per character. */
const SCAN_TURN_CHARACTERS = 128 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const QUOTE = 0x22;
const COMMA = 0x2c;
const BYTE_ORDER_MARK = '\uFEFF';

const BARE_RETURNS = 'lines end with CR alone: end them with LF or CRLF';

/**
 * Reads RFC 4180 CSV in UTF-8, in batches of records; the header row is the first record. A record with bad
 * quoting or invalid UTF-8 is yielded with the reason, and reading continues with the next line.
 * @throws {DatasetError} for a line that is longer than any row can be.
 */
export async function* readCsv(source: AsyncIterable<Buffer>): AsyncGenerator<CsvRecord[]> {
  const reader = new RecordReader();
  for await (const chunk of source) yield* inTurns(reader.push(chunk));
  yield* inTurns(reader.end());
}

/** Gives the event loop a turn between batches. */
async function* inTurns(batches: Iterable<CsvRecord[]>): AsyncGenerator<CsvRecord[]> {
  let isFirst = true;
  for (const records of batches) {
    if (!isFirst) await nextTurn();
    isFirst = false;
    if (records.length > 0) yield records;
  }
}

/**
 * Passes whole, decoded, correctly quoted records to csv-stream's parser, and rejects the errors that the
 * parser does not detect.
 *
 * Its generators yield batches of records, possibly empty, whenever the event loop should get a turn.
 */
class RecordReader {
  readonly #fields = new FieldParser();
  #records: CsvRecord[] = [];
  /** Characters parsed since the last batch. */
  #parsed = 0;
  /** Bytes after the last line end. */
  #rest: Buffer[] = [];
  #restBytes = 0;
  #line = 0;
  /** The lines so far of a record whose quoted field is still open. */
  #open: string[] = [];
  /** Their length in UTF-16 code units, line feeds included. */
  #openLength = 0;

  *push(chunk: Buffer): Generator<CsvRecord[]> {
    const end = chunk.lastIndexOf(LF) + 1;
    if (end > 0) {
      const block = Buffer.concat([...this.#rest, chunk.subarray(0, end)]);
      this.#rest = [];
      this.#restBytes = 0;
      yield* this.#lines(block);
    }
    if (end < chunk.length) {
      this.#rest.push(chunk.subarray(end));
      this.#restBytes += chunk.length - end;
      if (this.#restBytes > MAX_LINE_BYTES) this.#refuseLength(this.#line + 1);
    }
    yield this.#take();
  }

  *end(): Generator<CsvRecord[]> {
    yield* this.#closeOpenRecords();
    if (this.#restBytes > 0) {
      this.#line++;
      const cutOff = 'the last record does not end with a line end, so the file may be cut off';
      this.#refuse(this.#line, this.#hasBareReturns() ? BARE_RETURNS : cutOff);
    }
    yield this.#take();
  }

  #take(): CsvRecord[] {
    const records = this.#records;
    this.#records = [];
    this.#parsed = 0;
    return records;
  }

  /** Whether the text after the last line feed has a carriage return, other than one of a CRLF that is cut in two. */
  #hasBareReturns(): boolean {
    const at = Buffer.concat(this.#rest).indexOf(CR);
    return at !== -1 && at < this.#restBytes - 1;
  }

  #refuseLength(line: number): never {
    const tooLong = `longer than ${MAX_LINE_BYTES} bytes, so this is not CSV`;
    throw new DatasetError(`line ${line}: ${this.#hasBareReturns() ? BARE_RETURNS : tooLong}`);
  }

  /** @param block whole lines, so no character is split. */
  *#lines(block: Buffer): Generator<CsvRecord[]> {
    if (isUtf8(block)) {
      const lines = block.toString().split('\n');
      lines.pop();
      for (const line of lines) {
        if (!this.#splitPlain(line)) yield* this.#text(line);
        if (this.#records.length >= BATCH_RECORDS) yield this.#take();
      }
      return;
    }
    for (let from = 0; from < block.length;) {
      const end = block.indexOf(LF, from);
      const line = block.subarray(from, end);
      if (isUtf8(line)) yield* this.#text(line.toString());
      else {
        yield* this.#closeOpenRecords();
        this.#line++;
        this.#refuse(this.#line, 'not valid UTF-8');
      }
      if (this.#records.length >= BATCH_RECORDS) yield this.#take();
      from = end + 1;
    }
  }

  /**
   * Splits a line without quotes at its commas, five times as fast as the parser. Most lines are such.
   * @returns false if the line must be parsed: it is the first, has quotes, or is very long.
   */
  #splitPlain(line: string): boolean {
    if (this.#open.length > 0 || this.#line === 0 || line.length > MAX_LINE_BYTES) return false;
    const record = line.endsWith('\r') ? line.slice(0, -1) : line;
    if (record.includes('"') || record.includes('\r')) return false;
    const fields = record.split(',', TURN_CHARACTERS);
    if (fields.length === TURN_CHARACTERS) return false;
    this.#line++;
    this.#records.push({ line: this.#line, fields });
    return true;
  }

  *#text(line: string): Generator<CsvRecord[]> {
    this.#line++;
    if (line.length > MAX_LINE_BYTES) this.#refuseLength(this.#line);
    if (this.#line === 1 && line.startsWith(BYTE_ORDER_MARK)) line = line.slice(1);
    const state = yield* scanLine(line, this.#open.length > 0);
    this.#open.push(line);
    this.#openLength += line.length + 1;
    if (state === 'complete') {
      yield* this.#acceptOpenRecord();
    } else if (state === 'invalid') {
      const isQuoted = this.#open.length > 1 || line.includes('"');
      yield* this.#giveUpOpenRecord(isQuoted ? 'bad quoting' : 'a carriage return outside quotes');
    } else if (this.#open.length >= MAX_RECORD_LINES || this.#openLength > MAX_LINE_BYTES) {
      yield* this.#giveUpOpenRecord(
        `a quote is opened and not closed within ${MAX_RECORD_LINES} lines or ${MAX_LINE_BYTES} bytes`,
      );
    }
  }

  *#acceptOpenRecord(): Generator<CsvRecord[]> {
    const text = this.#open.join('\n');
    const line = this.#line - this.#open.length + 1;
    this.#clearOpen();
    this.#parsed += text.length;
    if (this.#parsed > TURN_CHARACTERS) yield this.#take();
    const fields = yield* this.#fields.parse(text.endsWith('\r') ? text.slice(0, -1) : text);
    this.#records.push({ line, fields });
  }

  /**
   * Reports the open record as invalid by its first line, and reads its other lines again, each as the start
   * of a record. This takes linear time: only the last line can open a quote, as all others have an even
   * number of quotes.
   */
  *#giveUpOpenRecord(reason: string): Generator<CsvRecord[]> {
    const [, ...others] = this.#open;
    this.#clearOpen();
    this.#line -= others.length;
    this.#refuse(this.#line, reason);
    for (const line of others) yield* this.#text(line);
  }

  #clearOpen(): void {
    this.#open = [];
    this.#openLength = 0;
  }

  /** Gives up the open record, whose quote can no longer be closed, and those that its lines open. */
  *#closeOpenRecords(): Generator<CsvRecord[]> {
    while (this.#open.length > 0) yield* this.#giveUpOpenRecord('a quote is opened and never closed');
  }

  #refuse(line: number, reason: string): void {
    this.#records.push({ line, reason });
  }
}

/**
 * Checks the quoting of one line, in time proportional to its length.
 * @param inside whether the line begins within a quoted field that an earlier line opened.
 * @yields an empty batch when the event loop should get a turn within a long line.
 * @returns `complete` if the record ends with this line, `open` if the line ends within a quoted field,
 * `invalid` if its quoting is.
 */
function* scanLine(line: string, inside: boolean): Generator<[], 'complete' | 'open' | 'invalid'> {
  const end = line.endsWith('\r') ? line.length - 1 : line.length;
  let at = 0;
  let turnAt = SCAN_TURN_CHARACTERS;
  let carriageReturn = -1;
  for (;;) {
    if (at > turnAt) {
      turnAt = at + SCAN_TURN_CHARACTERS;
      yield [];
    }
    if (inside) {
      const closing = indexOfQuote(line, at);
      if (closing === -1) return 'open';
      at = closing + 1;
      if (line.charCodeAt(at) === QUOTE) {
        at++;
        continue;
      }
      if (at === end) return 'complete';
      if (line.charCodeAt(at) !== COMMA) return 'invalid';
      at++;
    }
    // A field begins at `at`. Whatever precedes the next quote is unquoted, and the quote must begin a field.
    const opening = indexOfQuote(line, at);
    const unquotedEnd = opening === -1 ? end : opening;
    if (carriageReturn < at) {
      const next = line.indexOf('\r', at);
      carriageReturn = next === -1 ? Infinity : next;
    }
    if (carriageReturn < unquotedEnd) return 'invalid';
    if (opening === -1) return 'complete';
    if (opening > at && line.charCodeAt(opening - 1) !== COMMA) return 'invalid';
    at = opening + 1;
    inside = true;
  }
}

/** Like `indexOf`, but three times as fast if the quote is at `from`, as between adjacent quoted fields. */
function indexOfQuote(line: string, from: number): number {
  return line.charCodeAt(from) === QUOTE ? from : line.indexOf('"', from);
}

/** csv-stream's parser, as a function of one record. */
class FieldParser {
  #fields: string[] = [];
  /** Whether the next field that the parser emits continues the last one. */
  #continues = false;
  readonly #parser = new Parser({ columns: [''], enclosedChar: '"', escapeChar: '"' });

  constructor() {
    this.#parser.on('column', (_name, text: string) => {
      if (this.#continues) this.#fields.push((this.#fields.pop() ?? '') + flatten(text));
      else this.#fields.push(text);
      this.#continues = false;
    });
  }

  /**
   * Parses a long record in pieces. Each ends with a comma, so that the parser, which appends character by character,
   * never holds a long text: garbage collection would copy its millions of parts.
   * @param record well quoted, without its line end.
   * @yields an empty batch between pieces, so that the event loop gets a turn.
   */
  *parse(record: string): Generator<[], string[]> {
    this.#fields = [];
    let isInside = false;
    let from = 0;
    do {
      if (from > 0) yield [];
      this.#continues = from > 0;
      const opening = isInside ? '"' : '';
      let to = Math.min(from + TURN_CHARACTERS, record.length);
      isInside = isInside !== hasOddQuotes(record.slice(from, to));
      // A doubled quote does not close the field: keep both quotes in one piece.
      if (!isInside && record[to - 1] === '"' && record[to] === '"') {
        to++;
        isInside = true;
      }
      this.#parser.parse(`${opening}${record.slice(from, to)}${isInside ? '",' : ','}`);
      from = to;
    } while (from < record.length);
    // The parser strips a carriage return at the end of a line, even within a quoted field. The empty field
    // after the last comma prevents that.
    this.#parser.parse('\n');
    this.#fields.pop();
    return this.#fields;
  }
}

function hasOddQuotes(text: string): boolean {
  let isOdd = false;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) isOdd = !isOdd;
  return isOdd;
}

/** Copies a string that was built by appending. UTF-16, because it may begin within a character. */
function flatten(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}
