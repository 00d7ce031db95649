import type { BadRows } from './bad-rows.js';
import { quote } from './reason-text.js';
import type { Row } from './rows.js';

/** Possible duplicates, each with the line of its first occurrence once that is known. */
export interface Suspects {
  names: Map<string, number | undefined>;
  numbers: Map<number, number | undefined>;
}

/** Reads all rows again to find the real duplicates among the suspects: all occurrences but the first. */
export async function findDuplicates(
  rows: () => AsyncIterable<Row[]>,
  { names, numbers }: Suspects,
  badRows: BadRows,
) {
  const duplicates: { line: number; no: number }[] = [];
  if (names.size === 0 && numbers.size === 0) return duplicates;
  for await (const batch of rows()) {
    for (const row of batch) {
      if ('reason' in row) continue;
      const { line } = row;
      const { no, name } = row.entry;
      const lineOfName = names.get(name);
      const lineOfNumber = numbers.get(no);
      if (lineOfName !== undefined) {
        badRows.skip(line, `name ${quote(name)} is already on line ${lineOfName}`);
        duplicates.push({ line, no });
      } else if (lineOfNumber !== undefined) {
        badRows.skip(line, `package_no ${no} is already on line ${lineOfNumber}`);
        duplicates.push({ line, no });
      } else {
        // Only for accepted rows: a skipped row must not make a later one a duplicate.
        if (names.has(name)) names.set(name, line);
        if (numbers.has(no)) numbers.set(no, line);
      }
    }
  }
  return duplicates;
}
