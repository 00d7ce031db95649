import { quoteField } from '../dataset-csv.js';
import type { Column, Format, ListedPackage } from './format.js';

/** Longer than any valid field. The rest of a longer one is not written: it is invalid anyway. */
const MAX_FIELD_LENGTH = 4096;

/**
 * Writes packages as the rows of a CSV. Each of them is one line: of a field with a line break, which makes it invalid, only the
 * part before it is kept, with a carriage return.
 */
export class CsvWriter {
  readonly #used = new Set<Column>();
  #rows = 0;

  constructor(private readonly format: Format) {}

  /** Number of rows so far. */
  get rows(): number {
    return this.#rows;
  }

  /** The header, after the last row. It leaves out the names of columns that no row has used, so that they count as absent. */
  get header(): Buffer {
    const columns = this.format.columns.map((column) => (this.#used.has(column) ? column : ''));
    return Buffer.from(`${['name', ...columns].join(',')}\n`);
  }

  async *write(batches: AsyncIterable<readonly ListedPackage[]>): AsyncGenerator<Buffer> {
    for await (const batch of batches) {
      this.#rows += batch.length;
      if (batch.length > 0) yield Buffer.from(batch.map((one) => this.#line(one)).join(''));
    }
  }

  #line(one: ListedPackage): string {
    let line = fieldOf(one.name);
    for (const column of this.format.columns) {
      const text = column === 'package_no' ? one.no : one[column];
      if (text !== undefined && text !== '') this.#used.add(column);
      line += `,${fieldOf(text ?? '')}`;
    }
    return `${line}\n`;
  }
}

function fieldOf(text: string): string {
  const short = text.length > MAX_FIELD_LENGTH ? text.slice(0, MAX_FIELD_LENGTH).toWellFormed() : text;
  return quoteField(short.replace(/[\r\n].*/s, '\r'));
}
