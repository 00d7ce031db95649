import xxhash from 'xxhash-wasm';
import type { BadRows } from './bad-rows.js';
import { quote } from '../process/reason-text.js';
import type { Row } from './rows.js';

/** Hashes a name to 53 bits, which a number holds exactly: in ten million names, two share a hash once in 180 datasets. */
type NameHash = (name: string) => number;

export async function createNameHash(): Promise<NameHash> {
  const hashes = await xxhash();
  return (name) => Number(hashes.h64(name) >> 11n);
}

/** What may repeat. */
interface Suspects {
  nameHashes: ReadonlySet<number>;
  numbers: ReadonlySet<number>;
}

/** Reads all rows again to find the real duplicates among the suspects: all occurrences but the first. */
export async function findDuplicates(
  rows: () => AsyncIterable<Row[]>,
  { nameHashes, numbers }: Suspects,
  hashOf: NameHash,
  badRows: BadRows,
) {
  const duplicates: { line: number; no: number }[] = [];
  if (nameHashes.size === 0 && numbers.size === 0) return duplicates;
  /** Where they occur first. */
  const placeOfName = new Map<string, string>();
  const placeOfNumber = new Map<number, string>();
  for await (const batch of rows()) {
    for (const row of batch) {
      if ('reason' in row) continue;
      const { line } = row;
      const { no, name } = row.entry;
      if (placeOfName.has(name)) {
        badRows.skip(line, `name ${quote(name)} is already on ${placeOfName.get(name)}`);
        duplicates.push({ line, no });
      } else if (placeOfNumber.has(no)) {
        badRows.skip(line, `package_no ${no} is already on ${placeOfNumber.get(no)}`);
        duplicates.push({ line, no });
      } else {
        // Only for accepted rows: a skipped row must not make a later one a duplicate.
        if (nameHashes.has(hashOf(name))) placeOfName.set(detached(name), badRows.placeOf(line));
        if (numbers.has(no)) placeOfNumber.set(no, badRows.placeOf(line));
      }
    }
  }
  return duplicates;
}

/** Copies a substring, which would otherwise keep the whole text in memory. */
function detached(text: string): string {
  return Buffer.from(text).toString();
}
