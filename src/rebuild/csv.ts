import { isUtf8 } from 'node:buffer';
import Parser from 'csv-stream/lib/parser.js';
import { DatasetError } from './dataset-error.js';

/** One record: its fields, or why it has none. `line` is the line it begins on, from 1. */
export type CsvRecord = { line: number; fields: string[] } | { line: number; reason: string };

/** A longer line is no registry's row: the file is something else, and is not gathered in memory. */
const MAX_LINE_BYTES = 1024 * 1024;

/** How many lines one quoted field may run over before its opening quote counts as a stray one. */
const MAX_RECORD_LINES = 100;

const UNQUOTED = '[^",\\r\\n]*';
const QUOTED_TEXT = '"[^"]*(?:""[^"]*)*';
const FIELD = `(?:${QUOTED_TEXT}"|${UNQUOTED})`;
const WELL_QUOTED = new RegExp(`^${FIELD}(?:,${FIELD})*$`);
const ENDS_INSIDE_QUOTES = new RegExp(`^(?:${FIELD},)*${QUOTED_TEXT}$`);

const LF = 0x0a;
const BYTE_ORDER_MARK = '\uFEFF';

/**
 * Reads RFC 4180 CSV, UTF-8, in batches of records; the header row is the first record. A record that is not well
 * quoted or not UTF-8 is yielded with its reason, and reading goes on with the next line.
 * @throws {DatasetError} for a line that is longer than any row can be.
 */
export async function* readCsv(source: AsyncIterable<Buffer>): AsyncGenerator<CsvRecord[]> {
  const reader = new RecordReader();
  for await (const chunk of source) {
    const records = reader.push(chunk);
    if (records.length > 0) yield records;
  }
  yield reader.end();
}

/**
 * Feeds csv-stream's parser what it handles well: whole, decoded records that are known to be well quoted. Everything
 * that it would let pass is checked here.
 */
class RecordReader {
  readonly #fields = new FieldParser();
  #records: CsvRecord[] = [];
  /** Bytes after the last line end. */
  #rest: Buffer[] = [];
  #restBytes = 0;
  #line = 0;
  /** The lines so far of a record whose quoted field is still open. */
  #open: string[] = [];

  push(chunk: Buffer): CsvRecord[] {
    const end = chunk.lastIndexOf(LF) + 1;
    if (end > 0) {
      this.#lines(Buffer.concat([...this.#rest, chunk.subarray(0, end)]));
      this.#rest = [];
      this.#restBytes = 0;
    }
    if (end < chunk.length) {
      this.#rest.push(chunk.subarray(end));
      this.#restBytes += chunk.length - end;
      if (this.#restBytes > MAX_LINE_BYTES) this.#refuseLength(this.#line + 1);
    }
    return this.#take();
  }

  end(): CsvRecord[] {
    this.#closeOpenRecords();
    if (this.#restBytes > 0) {
      this.#line++;
      this.#refuse(this.#line, 'the last record does not end with a line end, so the file may be cut off');
    }
    return this.#take();
  }

  #take(): CsvRecord[] {
    const records = this.#records;
    this.#records = [];
    return records;
  }

  #refuseLength(line: number): never {
    throw new DatasetError(`line ${line}: longer than ${MAX_LINE_BYTES} bytes, so this is not CSV`);
  }

  /** @param block whole lines, so no character is split. */
  #lines(block: Buffer): void {
    if (isUtf8(block)) {
      const lines = block.toString().split('\n');
      lines.pop();
      for (const line of lines) this.#text(line);
      return;
    }
    for (let from = 0; from < block.length;) {
      const end = block.indexOf(LF, from);
      const line = block.subarray(from, end);
      if (isUtf8(line)) this.#text(line.toString());
      else {
        this.#closeOpenRecords();
        this.#line++;
        this.#refuse(this.#line, 'not valid UTF-8');
      }
      from = end + 1;
    }
  }

  #text(line: string): void {
    this.#line++;
    if (line.length > MAX_LINE_BYTES) this.#refuseLength(this.#line);
    if (this.#line === 1 && line.startsWith(BYTE_ORDER_MARK)) line = line.slice(1);
    if (this.#open.length === 0 && !line.includes('"')) {
      const record = line.endsWith('\r') ? line.slice(0, -1) : line;
      // Nothing to parse, in nearly every row of every registry: the parser, character by character, takes five times
      // as long for it.
      if (!record.includes('\r')) {
        this.#records.push({ line: this.#line, fields: record.split(',') });
        return;
      }
    }
    this.#open.push(line);
    const first = this.#line - this.#open.length + 1;
    const text = this.#open.join('\n');
    const record = text.endsWith('\r') ? text.slice(0, -1) : text;
    if (WELL_QUOTED.test(record)) {
      this.#open = [];
      this.#accept(first, record);
    } else if (!ENDS_INSIDE_QUOTES.test(text)) {
      this.#giveUpOpenRecord(record.includes('"') ? 'bad quoting' : 'a carriage return outside quotes');
    } else if (this.#open.length >= MAX_RECORD_LINES || text.length > MAX_LINE_BYTES) {
      this.#giveUpOpenRecord(
        `a quote is opened and not closed within ${MAX_RECORD_LINES} lines or ${MAX_LINE_BYTES} bytes`,
      );
    }
  }

  /** The open record is refused by its first line; the lines after it get their own chance. */
  #giveUpOpenRecord(reason: string): void {
    const [, ...others] = this.#open;
    this.#open = [];
    this.#line -= others.length;
    this.#refuse(this.#line, reason);
    for (const line of others) this.#text(line);
  }

  /** No line can follow that would close a quote. */
  #closeOpenRecords(): void {
    while (this.#open.length > 0) this.#giveUpOpenRecord('a quote is opened and never closed');
  }

  #accept(line: number, record: string): void {
    this.#records.push({ line, fields: this.#fields.parse(record) });
  }

  #refuse(line: number, reason: string): void {
    this.#records.push({ line, reason });
  }
}

/** csv-stream's parser, as a function of one record. */
class FieldParser {
  #fields: string[] = [];
  readonly #parser = new Parser({ columns: [''], enclosedChar: '"', escapeChar: '"' });

  constructor() {
    this.#parser.on('column', (_name, text: string) => this.#fields.push(text));
  }

  /** @param record well quoted, without its line end. */
  parse(record: string): string[] {
    this.#fields = [];
    // The parser strips a carriage return off the end of a line, also one that a quoted field ends with: an empty
    // column more takes that place.
    this.#parser.parse(`${record},\n`);
    this.#fields.pop();
    return this.#fields;
  }
}
