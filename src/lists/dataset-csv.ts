import type { PackageEntry } from '../snapshot/package-document.js';
import type { SnapshotMeta } from '../snapshot/snapshot.js';

/** What makes a field of a CSV need quotes (RFC 4180). */
const SPECIAL = /[",\r\n]/;

/** The columns that not every dataset has. */
export type DatasetColumns = Pick<SnapshotMeta, 'has_package_no' | 'has_weights'>;

/** Writes packages as rows of a dataset. */
export function datasetRows(
  entries: readonly PackageEntry[],
  { has_package_no: hasNumbers, has_weights: hasWeights }: DatasetColumns,
): string {
  const rows = entries.map(({ no, name, version, url, weight }) => [
    ...(hasNumbers ? [String(no)] : []),
    ...[name, version, url].map(quoteField),
    ...(hasWeights ? [String(weight)] : []),
  ]);
  return rows.map(lineOf).join('');
}

/** The row with the names of the columns. */
export function datasetHeader({
  has_package_no: hasNumbers,
  has_weights: hasWeights,
}: DatasetColumns): string {
  return lineOf([
    ...(hasNumbers ? ['package_no'] : []),
    ...['name', 'version', 'url'],
    ...(hasWeights ? ['weight'] : []),
  ]);
}

function quoteField(text: string): string {
  return SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function lineOf(fields: readonly string[]): string {
  return `${fields.join(',')}\n`;
}
