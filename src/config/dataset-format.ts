/** Values of `DATASET_FORMAT`. All but `csv` are converted, see `src/rebuild/dataset/formats`. */
export const DATASET_FORMATS = [
  'csv',
  'jsonl',
  'lines',
  'json',
  'pypi',
  'npm',
  'crates',
  'rubygems',
  'packagist',
  'debian',
] as const;

export type DatasetFormat = (typeof DATASET_FORMATS)[number];

/** @param format may be any value of the variable. */
export function isConverted(format: DatasetFormat): boolean {
  return format !== 'csv' && DATASET_FORMATS.includes(format);
}
