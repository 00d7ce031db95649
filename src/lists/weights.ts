import { createHash } from 'node:crypto';
import type { PackageEntry } from '../snapshot/package-document.js';
import { canonicalName, type NameRule } from '../util/name-rule.js';
import { quote } from '../util/reason-text.js';
import { DatasetError, type BadRows } from './fetch/dataset-error.js';
import { peek } from './fetch/decompress.js';
import { readColumns, type Row, type Values } from './readers/csv-records.js';
import { readObjects } from './formats/jsonl.js';
import { nameOf, orReason, weightOf } from './formats/package-check.js';
import { NameTable } from './formats/name-table.js';

/** Name of the document in error messages. */
const WEIGHTS = 'WEIGHTS_URL';

/** Maximum number of names, as in a dataset. */
const MAX_NAMES = 10_000_000;

/** The columns (CSV) or members (JSON lines) that hold the name and the weight. */
export interface WeightsColumns {
  name: string;
  weight: string;
}

/** The weights of packages, from a document of their own. */
export class Weights {
  private constructor(
    private readonly table: NameTable,
    private readonly nameRule: NameRule,
    /** SHA-256 of the text, in hexadecimal. */
    readonly digest: string,
  ) {}

  /**
   * Reads a document: CSV with a header, or JSON lines. The first character that is not white space shows which format
   * it is. If a name is repeated, its largest weight counts.
   * @param nameRule the rule for comparing names of the document with names of the dataset.
   * @throws {DatasetError} if the document is invalid. The caller adds the name of the document.
   */
  static async read(
    text: AsyncIterable<Buffer>,
    columns: WeightsColumns,
    nameRule: NameRule,
    badRows: BadRows,
  ): Promise<Weights> {
    const table = await NameTable.create(MAX_NAMES);
    const hash = createHash('sha256');
    const hashed = async function* () {
      for await (const chunk of text) {
        hash.update(chunk);
        yield chunk;
      }
    };
    const add = ({ values: [name, weight] }: Values) => {
      const key = canonicalName(nameRule, nameOf(name, columns.name));
      const value = weightOf(weight, columns.weight);
      const address = table.add(key, value);
      if (value > table.numberAt(address)) table.setNumber(address, value);
    };
    for await (const rows of rowsOf(hashed(), columns)) {
      for (const row of rows) {
        const reason = 'reason' in row ? row.reason : orReason(() => add(row));
        if (reason !== undefined) badRows.skip(`${WEIGHTS}: line ${row.at}`, reason);
      }
    }
    if (table.size === 0) throw new DatasetError('the document has no weights');
    return new Weights(table, nameRule, hash.digest('hex'));
  }

  /**
   * Number of different names, and number of unknown names. A name is unknown until a package with this name is passed
   * to `join`.
   */
  get counts(): { names: number; unknown: number } {
    const { size, marked } = this.table;
    return { names: size, unknown: size - marked };
  }

  /** A warning if all names are unknown; otherwise undefined. */
  get warning(): string | undefined {
    const { names, unknown } = this.counts;
    if (unknown < names) return undefined;
    return `no package has the name of a weight, so all weights are 0: WEIGHTS_URL has ${names} other names`;
  }

  /** Whether a package with this name was passed to `join` and has a weight above 0. */
  hasWeight(name: string): boolean {
    const address = this.#find(name);
    return address !== 0 && this.table.isMarked(address) && this.table.numberAt(address) > 0;
  }

  /** Sets the weight of each package; 0 if the document has no weight for it. Weights in the dataset are replaced. */
  join(entries: PackageEntry[]): void {
    for (const entry of entries) {
      const address = this.#find(entry.name);
      if (address !== 0) this.table.mark(address);
      entry.weight = address === 0 ? 0 : this.table.numberAt(address);
    }
  }

  /** The address of a name; 0 if it is missing. */
  #find(name: string): number {
    return this.table.find(canonicalName(this.nameRule, name));
  }
}

/** Adds the name of the document to a `DatasetError` that lacks it. */
export function ofWeights(error: unknown): unknown {
  if (!(error instanceof DatasetError) || error.message.startsWith(WEIGHTS)) return error;
  return new DatasetError(`${WEIGHTS}: ${error.message}`, { cause: error });
}

/** The name and the weight in each row. */
async function* rowsOf(source: AsyncIterable<Buffer>, columns: WeightsColumns): AsyncGenerator<Row[]> {
  const { start, chunks } = await peek(source);
  if (!/^\s*[{[]/.test(start.toString())) {
    const indexes = (header: string[]) => [indexIn(header, columns.name), indexIn(header, columns.weight)];
    yield* readColumns(chunks, indexes);
    return;
  }
  let hasWeights = false as boolean;
  for await (const rows of readObjects(chunks)) {
    yield rows.map((row) => {
      if (row.reason !== undefined) return row;
      const { at, object, text } = row;
      if (!(columns.name in object))
        return { at, reason: `no member ${quote(columns.name)} (WEIGHTS_COLUMNS): ${quote(text)}` };
      hasWeights ||= columns.weight in object;
      return { at, values: [object[columns.name], object[columns.weight]] };
    });
  }
  if (!hasWeights) throw new DatasetError(`no line has a member ${quote(columns.weight)} (WEIGHTS_COLUMNS)`);
}

/** @throws {DatasetError} unless the header has the column exactly once. */
function indexIn(header: string[], column: string): number {
  const index = header.indexOf(column);
  if (index !== -1 && index === header.lastIndexOf(column)) return index;
  const fault = index === -1 ? 'has no column' : 'has two columns';
  throw new DatasetError(
    `line 1: the header ${fault} ${quote(column)} (WEIGHTS_COLUMNS): ${quote(header.join())}`,
  );
}
