import type { BadRows } from './bad-rows.js';
import { quote } from './reason-text.js';
import type { Row } from './rows.js';

/** Values that seem to repeat, each with the line it was first found on, once it is known. */
export interface Suspects {
  names: Map<string, number | undefined>;
  numbers: Map<number, number | undefined>;
}

/** Reads again where something seemed to repeat, and finds the rows that really do: all but the first of each. */
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
        badRows.skip(line, `name ${quote(name)} was on line ${lineOfName} already`);
        duplicates.push({ line, no });
      } else if (lineOfNumber !== undefined) {
        badRows.skip(line, `package_no ${no} was on line ${lineOfNumber} already`);
        duplicates.push({ line, no });
      } else {
        // Only now: a row that is skipped takes neither its name nor its number from a later one.
        if (names.has(name)) names.set(name, line);
        if (numbers.has(no)) numbers.set(no, line);
      }
    }
  }
  return duplicates;
}
