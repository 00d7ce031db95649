import { open, type FileHandle } from 'node:fs/promises';
import { constants, gzipSync } from 'node:zlib';
import { readText } from '../src/rebuild/dataset/text.js';
import { quote } from '../src/rebuild/process/reason-text.js';
import { NUMBER_COLUMN, readRows } from '../src/rebuild/dataset/rows.js';
import type { PackageEntry } from '../src/snapshot/package-document.js';

/** Maximum size of the text of an earlier dataset, in bytes: enough for 10,000,000 packages. */
const MAX_TEXT_BYTES = 2 ** 30;

/**
 * Reads the package numbers of an earlier dataset.
 * @param path of a CSV file, plain or gzip.
 * @throws {Error} with the path and the reason if a row is invalid, or a name or number occurs twice.
 */
export async function readNumbers(path: string): Promise<Map<string, number>> {
  const numbers = new Map<string, number>();
  const seen = new Set<number>();
  const onHeader = (columns: readonly string[]) => {
    if (!columns.includes(NUMBER_COLUMN)) throw new Error(`the header has no column \`${NUMBER_COLUMN}\``);
  };
  let file: FileHandle | undefined;
  try {
    file = await open(path);
    const text = readText(file, MAX_TEXT_BYTES);
    for await (const rows of readRows(text, 'https://registry.example/{name}', onHeader)) {
      for (const row of rows) {
        if ('reason' in row) throw new Error(`line ${row.line}: ${row.reason}`);
        const { no, name } = row.entry;
        if (numbers.has(name)) throw new Error(`line ${row.line}: name ${quote(name)} occurs twice`);
        if (seen.has(no)) throw new Error(`line ${row.line}: package_no ${no} occurs twice`);
        numbers.set(name, no);
        seen.add(no);
      }
    }
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error });
  } finally {
    await file?.close();
  }
  return numbers;
}

/**
 * Assigns numbers to names. Those in `earlier` keep their numbers, and the others get the next ones after its
 * largest number, in byte order.
 * @returns the names ordered by number.
 */
export function assignNumbers(
  names: readonly string[],
  earlier: ReadonlyMap<string, number>,
): { no: number; name: string }[] {
  let last = 0;
  for (const no of earlier.values()) last = Math.max(last, no);
  return [...names]
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .map((name) => ({ no: earlier.get(name) ?? ++last, name }))
    .sort((a, b) => a.no - b.no);
}

/**
 * Encodes a dataset as gzip CSV. Equal rows and dates give equal bytes with the same zlib.
 * @param date is written into the gzip header, in whole seconds.
 */
export function encodeDataset(rows: readonly PackageEntry[], date: Date): Buffer {
  const lines = rows.map(({ no, name, version, url }) =>
    [String(no), name, version, url].map(quoteField).join(','),
  );
  const zipped = gzipSync([`${NUMBER_COLUMN},name,version,url`, ...lines, ''].join('\n'), {
    level: constants.Z_BEST_COMPRESSION,
  });
  zipped.writeUInt32LE(Math.floor(date.getTime() / 1000), 4);
  // zlib writes the operating system to this byte; 255 means unknown (RFC 1952, section 2.3).
  zipped.writeUInt8(255, 9);
  return zipped;
}

function quoteField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
