import { csv } from '../../src/lists/formats/csv.js';
import type { Documents } from '../../src/lists/fetch/documents.js';
import { PackageCheck } from '../../src/lists/formats/package-check.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { streamOf } from './batches.js';

/** A row of a CSV: its package, or why it has none. */
export type Row = { line: number; entry: PackageEntry } | { line: number; reason: string };

/** The rows of a CSV that arrives in chunks, each checked by itself. */
export async function readRows(chunks: readonly Buffer[], urlTemplate?: string): Promise<Row[]> {
  const documents = { open: () => ({ text: () => streamOf(chunks) }) } as unknown as Documents;
  const check = new PackageCheck(urlTemplate);
  const rows: Row[] = [];
  for await (const items of csv.read(documents, {
    packageUrlTemplate: urlTemplate,
    jsonPaths: { items: [] },
    nameRule: 'exact',
  })) {
    for (const item of items) {
      const [line, entry] = [Number(item.at), check.read(item)];
      rows.push(typeof entry === 'string' ? { line, reason: entry } : { line, entry });
    }
  }
  return rows;
}
