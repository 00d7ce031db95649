import { createHash, type Hash } from 'node:crypto';
import { writeFile, type FileHandle } from 'node:fs/promises';
import xxhash from 'xxhash-wasm';
import {
  fieldOf,
  OPTIONAL_FIELDS,
  withOptional,
  type OptionalField,
  type PackageEntry,
} from '../snapshot/package-fields.js';
import { canonicalName } from '../util/name-rule.js';
import { DatasetError, type BadRows } from './fetch/dataset-error.js';
import type { Documents } from './fetch/documents.js';
import { readLines } from './readers/text-lines.js';
import type { Format, Item, ListedPackage, Place, ReadOptions } from './formats/list-format.js';
import { EXTRA_REPEATED, NumberList } from './number-list.js';
import { optionalValue, PackageCheck } from './formats/package-check.js';
import { NameTable } from './formats/name-table.js';
import { chunksOf, openTemporaryFile } from './fetch/temporary-file.js';

/** Maximum number of packages of a list, including invalid and repeated ones. */
const MAX_PACKAGES = 10_000_000;

/** Maximum number of packages in a line of the file. */
const BATCH = 1000;

/** A package in the file. */
type Written = [no: number, name: string, version: string, url: string, ...optional: unknown[]];

/** Index of the first optional field in `Written`. In the file, a missing value is null if another value follows it. */
const FIRST_OPTIONAL = 4;

/** Bits of a hash of 64 bits that a number cannot hold exactly. */
const UNUSED_BITS = 11n;

/** Closes the array of a line, and ends the line. */
const END = Buffer.from(']\n');

/** Consecutive packages of a list. */
interface Batch {
  /**
   * The document of these packages, such as `page 3`; empty if the list is one document, or the format merges repeated
   * names.
   */
  document: string;
  /** The place of each package in the document; empty if the format merges repeated names. */
  places: Place[];
  entries: PackageEntry[];
}

/**
 * The packages of a list in a temporary file. Each line is a JSON array: the document, the places, and an array of up
 * to `BATCH` packages. Each package was checked on its own and numbered. The file disappears when it is closed. Each
 * package also takes 16 bytes outside the heap: 8 for its number, and 8 for a hash of its name. With ten million names,
 * one of 180 lists has two names with the same hash.
 */
export class PackageFile {
  /** Hashes of the canonical names, sorted once the file is filled. */
  readonly nameHashes = new NumberList();
  /** The hashes that several packages have: duplicates, or different names. */
  repeatedHashes: ReadonlySet<number> = new Set();
  readonly numbers = new NumberList();
  /** SHA-256 of the packages in their order, in hexadecimal. */
  digest = '';
  /** Checks each package. It also records whether the list has numbers, and which optional fields the list has. */
  readonly check: PackageCheck;

  private constructor(
    private readonly file: FileHandle,
    private readonly format: Format,
    private readonly options: ReadOptions,
    private readonly hash: (name: string) => number,
  ) {
    this.check = new PackageCheck(options.packageUrlTemplate);
  }

  /** The caller must close it. */
  static async create(format: Format, options: ReadOptions): Promise<PackageFile> {
    const hashes = await xxhash();
    return new PackageFile(await openTemporaryFile(), format, options, (name) =>
      Number(hashes.h64(name) >> UNUSED_BITS),
    );
  }

  /** The canonical form of a name, which all its spellings share. */
  canonicalOf(name: string): string {
    return canonicalName(this.options.nameRule, name);
  }

  /** A hash that is equal for all spellings of a name. */
  hashOf(name: string): number {
    return this.hash(this.canonicalOf(name));
  }

  /**
   * Reads a list while it is transferred.
   * @throws {DatasetError} if the list is not complete, or has too many invalid rows.
   */
  async fill(documents: Documents, badRows: BadRows): Promise<void> {
    const hash = createHash('sha256');
    const packages =
      this.format.replaces === undefined
        ? this.#checked(documents, badRows)
        : this.#merged(documents, badRows, this.format.replaces);
    await writeFile(this.file, this.#lines(packages, hash));
    this.nameHashes.sort();
    this.repeatedHashes = this.nameHashes.repeated(badRows.max + EXTRA_REPEATED);
    const { isNumbered, optionalFields } = this.check;
    this.digest = hash.update(JSON.stringify([isNumbered, optionalFields.has('weight')])).digest('hex');
  }

  /** Reads the packages from the beginning. Can be called more than once. */
  async *read(): AsyncGenerator<Batch> {
    for await (const { texts } of readLines(chunksOf(this.file))) {
      for (const text of texts) {
        const [document, places, written] = JSON.parse(text) as [string, Place[], Written[]];
        yield { document, places, entries: written.map((one) => toEntry(one, this.check.optionalFields)) };
      }
    }
  }

  /** The place of a package of a batch, as text. */
  placeOf({ document, places }: Pick<Batch, 'document' | 'places'>, index: number): string {
    const at = places[index] ?? '';
    const place = this.format.place?.(at) ?? `line ${at}`;
    return document === '' ? place : `${document}: ${place}`;
  }

  /** Closes the file, which frees its space. */
  close(): Promise<void> {
    return this.file.close();
  }

  async *#lines(batches: AsyncIterable<Batch>, hash: Hash): AsyncGenerator<Buffer> {
    for await (const { document, places, entries } of batches) {
      for (let start = 0; start < entries.length; start += BATCH) {
        const some = entries.slice(start, start + BATCH);
        for (const { no, name } of some) {
          this.numbers.push(no);
          this.nameHashes.push(this.hashOf(name));
        }
        const json = Buffer.from(JSON.stringify(some.map(toWritten)));
        // The brackets are not hashed, so the digest does not depend on the size of batches.
        hash.update(json.subarray(1, -1)).update(',');
        const where = JSON.stringify([document, places.slice(start, start + BATCH)]).slice(0, -1);
        yield Buffer.concat([Buffer.from(`${where},`), json, END]);
      }
    }
  }

  /** The valid packages of a list, with their items. */
  async *#checked(documents: Documents, badRows: BadRows): AsyncGenerator<Batch & { items: Item[] }> {
    let count = 0;
    for await (const items of located(documents, this.format.read(documents, this.options))) {
      const batch: Batch = { document: documents.place, places: [], entries: [] };
      const valid: Item[] = [];
      if ((count += items.length) > MAX_PACKAGES)
        throw new DatasetError(`the list has more than ${MAX_PACKAGES} packages`);
      for (const item of items) {
        const entry = this.check.read(item);
        if (typeof entry === 'string') badRows.skip(this.placeOf({ ...batch, places: [item.at] }, 0), entry);
        else {
          batch.places.push(item.at);
          batch.entries.push(entry);
          valid.push(item);
        }
      }
      yield { ...batch, items: valid };
    }
  }

  /**
   * The valid packages of a list, with repeated names merged. They are numbered in the order of first occurrence. The
   * spelling is from the same entry as the version.
   */
  async *#merged(
    documents: Documents,
    badRows: BadRows,
    replaces: NonNullable<Format['replaces']>,
  ): AsyncGenerator<Batch> {
    const names = await NameTable.create();
    for await (const { entries, items } of this.#checked(documents, badRows)) {
      for (const [i, entry] of entries.entries()) {
        const { name, version } = entry;
        const canonical = this.canonicalOf(name);
        const address = names.add(canonical);
        const [earlier] = names.lastTextOf(address)?.split('\n') ?? [];
        if (earlier !== undefined && !replaces(version, earlier, items[i] as ListedPackage)) continue;
        const spelling = name === canonical ? '' : name;
        // A line break can separate the values, because `PackageCheck` rejects values that contain one.
        const text = OPTIONAL_FIELDS.reduce(
          (one, field) => `${one}\n${entry[field] ?? ''}`,
          `${version}\n${spelling}`,
        );
        names.push(address, text);
      }
    }
    let no = 0;
    const toEntry = (address: number): PackageEntry => {
      const [version = '', spelling, ...others] = (names.lastTextOf(address) ?? '').split('\n');
      const name = spelling || names.nameAt(address);
      const entry: PackageEntry = { no: ++no, name, version, url: this.check.urlOf(name) };
      return withOptional(entry, (field, i) => optionalValue(others[i] || undefined, field));
    };
    for (const entries of names.map(toEntry)) yield { document: '', places: [], entries };
  }
}

function toWritten(entry: PackageEntry): Written {
  const { no, name, version, url } = entry;
  const written: Written = [no, name, version, url];
  OPTIONAL_FIELDS.forEach((field, i) => {
    if (entry[field] !== undefined) written[FIRST_OPTIONAL + i] = entry[field];
  });
  return written;
}

function toEntry(written: Written, present: ReadonlySet<OptionalField>): PackageEntry {
  const [no, name, version, url] = written;
  return withOptional<PackageEntry>(
    { no, name, version, url },
    (field, i) => written[FIRST_OPTIONAL + i] ?? (present.has(field) ? fieldOf(field).default : undefined),
  );
}

/** Adds the place of the document, such as `page 3`, to an error. */
async function* located<T>(documents: Documents, source: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* source;
  } catch (error) {
    if (!(error instanceof DatasetError) || documents.place === '') throw error;
    throw new DatasetError(`${documents.place}: ${error.message}`, { cause: error });
  }
}
