import { FORMATS } from '../lists/formats/index.js';

export type DatasetFormat = keyof typeof FORMATS;

/** Values of `DATASET_FORMAT`. */
export const DATASET_FORMATS = Object.keys(FORMATS) as [DatasetFormat, ...DatasetFormat[]];

/** @param format may be any value of the variable. */
export function isConverted(format: DatasetFormat): boolean {
  return format !== 'csv' && DATASET_FORMATS.includes(format);
}
