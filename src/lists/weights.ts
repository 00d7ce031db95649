import { createHash } from 'node:crypto';
import type { PackageEntry } from '../snapshot/package-document.js';
import { canonicalName, type NameRule } from '../util/name-rule.js';
import { quote } from '../util/reason-text.js';
import type { BadRows } from './bad-rows.js';
import { DatasetError } from './dataset-error.js';
import { peek } from './documents/decompress.js';
import { readColumns } from './formats/csv.js';
import type { BadItem } from './formats/format.js';
import { readObjects } from './formats/jsonl.js';
import { nameOf, orReason, weightOf } from './package-check.js';
import { Table } from './table.js';

/** The document, in reasons. */
const WEIGHTS = 'WEIGHTS_URL';

/** Maximum number of names, the same as of a dataset. */
const MAX_NAMES = 10_000_000;

/** The members of a document of weights that have the name and the weight. */
export interface WeightsColumns {
  name: string;
  weight: string;
}

/** The values of a row, which may have any type. */
interface Row {
  at: number;
  name: unknown;
  weight: unknown;
}

/** The weights of packages, from a document of their own. */
export class Weights {
  private constructor(
    private readonly table: Table,
    private readonly nameRule: NameRule,
    /** SHA-256 of the text, in hexadecimal. */
    readonly digest: string,
  ) {}

  /**
   * Reads a document: CSV with a header, or JSON lines, told apart by the first character. Of a repeated name, the larger weight
   * counts.
   * @param nameRule by which its names are compared with those of the dataset.
   * @throws {DatasetError} which the caller says to be about the weights.
   */
  static async read(
    text: AsyncIterable<Buffer>,
    columns: WeightsColumns,
    nameRule: NameRule,
    badRows: BadRows,
  ): Promise<Weights> {
    const table = await Table.create(MAX_NAMES);
    const hash = createHash('sha256');
    const hashed = async function* () {
      for await (const chunk of text) {
        hash.update(chunk);
        yield chunk;
      }
    };
    const add = ({ name, weight }: Row) => {
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

  /** Numbers of different names: all, and those that no package of the dataset has. */
  get counts(): { names: number; unknown: number } {
    const { size, marked } = this.table;
    return { names: size, unknown: size - marked };
  }

  /** Undefined if a package that `join` has seen has one of the names. */
  get warning(): string | undefined {
    const { names, unknown } = this.counts;
    if (unknown < names) return undefined;
    return `no package has the name of a weight, so all weights are 0: WEIGHTS_URL has ${names} other names`;
  }

  /** Whether a package that `join` has seen has a weight other than 0. */
  isWeighed(name: string): boolean {
    const address = this.#find(name);
    return address !== 0 && this.table.isMarked(address) && this.table.numberAt(address) > 0;
  }

  /** Gives each package its weight, 0 if it is missing, whatever the dataset says. */
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

/** Adds which document the reason of a failure is about. */
export function ofWeights(error: unknown): unknown {
  if (!(error instanceof DatasetError) || error.message.startsWith(WEIGHTS)) return error;
  return new DatasetError(`${WEIGHTS}: ${error.message}`, { cause: error });
}

async function* rowsOf(
  source: AsyncIterable<Buffer>,
  columns: WeightsColumns,
): AsyncGenerator<(Row | BadItem)[]> {
  const { start, chunks } = await peek(source);
  if (!/^\s*[{[]/.test(start.toString())) {
    const indexes = (header: string[]) => [indexIn(header, columns.name), indexIn(header, columns.weight)];
    for await (const rows of readColumns(chunks, indexes)) {
      yield rows.map((row) =>
        'reason' in row ? row : { at: row.at, name: row.values[0], weight: row.values[1] },
      );
    }
    return;
  }
  let hasWeights = false as boolean;
  for await (const rows of readObjects(chunks)) {
    yield rows.map((row) => {
      if ('reason' in row) return row;
      const { at, object, text } = row;
      if (!(columns.name in object))
        return { at, reason: `no member ${quote(columns.name)} (WEIGHTS_COLUMNS): ${quote(text)}` };
      hasWeights ||= columns.weight in object;
      return { at, name: object[columns.name], weight: object[columns.weight] };
    });
  }
  if (!hasWeights) throw new DatasetError(`no line has a member ${quote(columns.weight)} (WEIGHTS_COLUMNS)`);
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
