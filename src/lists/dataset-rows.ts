import { columnOf, type OptionalField, type PackageEntry } from '../snapshot/package-fields.js';

/** A CSV field with one of these characters must be quoted (RFC 4180). */
const SPECIAL = /[",\r\n]/;

/** The columns that not every dataset has. */
export interface DatasetColumns {
  isNumbered: boolean;
  optional: readonly OptionalField[];
}

/** The text of packages as rows of a dataset. */
export function datasetRows(entries: readonly PackageEntry[], columns: DatasetColumns): string {
  const fields = fieldsOf(columns);
  return entries
    .map((entry) => lineOf(fields.map((field) => quoteField(String(entry[field] ?? '')))))
    .join('');
}

/** The row with the names of the columns. */
export function datasetHeader(columns: DatasetColumns): string {
  return lineOf(fieldsOf(columns).map(columnOf));
}

function fieldsOf({ isNumbered, optional }: DatasetColumns) {
  return [...(isNumbered ? (['no'] as const) : []), 'name', 'version', 'url', ...optional] as const;
}

function quoteField(text: string): string {
  return SPECIAL.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function lineOf(fields: readonly string[]): string {
  return `${fields.join(',')}\n`;
}
