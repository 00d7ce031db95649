import { createHash } from 'node:crypto';
import { quote } from '../util/reason-text.js';
import { DatasetError, type BadRows } from './fetch/dataset-error.js';
import { peek } from './fetch/decompress.js';
import { readColumns, type Row, type Values } from './readers/csv-records.js';
import { readObjects } from './formats/jsonl.js';
import { nameOf, orReason, weightOf } from './formats/package-check.js';
import type { PackageFile } from './package-file.js';

/** Name of the document in error messages. */
const WEIGHTS = 'WEIGHTS_URL';

/** The columns (CSV) or members (JSON lines) that hold the name and the weight. */
export interface WeightsColumns {
  name: string;
  weight: string;
}

/** Packages, sorted by the hashes of their canonical names. */
export type HashedPackages = Pick<PackageFile, 'canonicalOf' | 'hashOf' | 'nameHashes' | 'repeatedHashes'>;

/** The weights of packages, from a document of their own. Each package takes 8 bytes outside the heap. */
export class Weights {
  /** By the index of the hash of the name. */
  readonly #byHash: Float64Array;
  /** Of names whose hash several packages have, by canonical name. */
  readonly #byName = new Map<string, number>();
  #names = 0;
  #unknown = 0;
  /** SHA-256 of the text, in hexadecimal. */
  digest = '';

  private constructor(private readonly packages: HashedPackages | undefined) {
    this.#byHash = new Float64Array(packages?.nameHashes.length ?? 0);
  }

  /**
   * Reads a document: CSV with a header, or JSON lines. The first character that is not white space shows which format
   * it is. If a name is repeated, its largest weight counts.
   * @param packages whose weights are read. Without them, only the digest is useful.
   * @throws {DatasetError} if the document is invalid. The caller adds the name of the document.
   */
  static async read(
    text: AsyncIterable<Buffer>,
    columns: WeightsColumns,
    packages: HashedPackages | undefined,
    badRows: BadRows,
  ): Promise<Weights> {
    const weights = new Weights(packages);
    const hash = createHash('sha256');
    const hashed = async function* () {
      for await (const chunk of text) {
        hash.update(chunk);
        yield chunk;
      }
    };
    const add = ({ values: [name, weight] }: Values) =>
      weights.#add(nameOf(name, columns.name), weightOf(weight, columns.weight));
    for await (const rows of rowsOf(hashed(), columns)) {
      for (const row of rows) {
        const reason = 'reason' in row ? row.reason : orReason(() => add(row));
        if (reason !== undefined) badRows.skip(`${WEIGHTS}: line ${row.at}`, reason);
      }
    }
    if (weights.#names === 0) throw new DatasetError('the document has no weights');
    weights.digest = hash.digest('hex');
    return weights;
  }

  /** Number of names, and number of those that no package has. A repeated name counts each time. */
  get counts(): { names: number; unknown: number } {
    return { names: this.#names, unknown: this.#unknown };
  }

  /** A warning if all names are unknown; otherwise undefined. */
  get warning(): string | undefined {
    if (this.#unknown < this.#names) return undefined;
    return `no package has the name of a weight, so all weights are 0: WEIGHTS_URL has ${this.#names} other names`;
  }

  /** The weight of a package; 0 if the document has none for it. */
  of(name: string): number {
    const key = this.#keyOf(name);
    return (typeof key === 'string' ? this.#byName.get(key) : this.#byHash[key]) ?? 0;
  }

  #add(name: string, weight: number): void {
    this.#names++;
    const key = this.#keyOf(name);
    if (key === -1) this.#unknown++;
    else if (typeof key === 'string') this.#byName.set(key, Math.max(weight, this.of(name)));
    else this.#byHash[key] = Math.max(weight, this.of(name));
  }

  /** The index of the hash of a name, or the canonical name if several packages have the hash; -1 if none has it. */
  #keyOf(name: string): number | string {
    if (this.packages === undefined) return -1;
    const { nameHashes, repeatedHashes } = this.packages;
    const hash = this.packages.hashOf(name);
    return repeatedHashes.has(hash) ? this.packages.canonicalOf(name) : nameHashes.indexOf(hash);
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
