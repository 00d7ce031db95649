import * as FORMATS from '../lists/formats/index.js';
import type { Format } from '../lists/formats/format.js';
import type { NameRule } from '../util/name-rule.js';

export type DatasetFormat = keyof typeof FORMATS;

/** Values of `DATASET_FORMAT`. */
export const DATASET_FORMATS = Object.keys(FORMATS) as [DatasetFormat, ...DatasetFormat[]];

/**
 * Whether a format needs `DATASET_URL`, because the bundled list has another format.
 * @param format may be an invalid value of `DATASET_FORMAT`.
 */
export function needsUrl(format: DatasetFormat): boolean {
  return format !== 'csv' && DATASET_FORMATS.includes(format);
}

/** Whether packages in a format cannot have a URL. @param format may be an invalid value of `DATASET_FORMAT`. */
export function lacksUrls(format: DatasetFormat): boolean {
  return DATASET_FORMATS.includes(format) && !('hasUrls' in FORMATS[format]);
}

/** The default of `NAME_RULE` for a format. */
export function defaultNameRule(format: DatasetFormat): NameRule {
  const { nameRule }: Format = FORMATS[format];
  return nameRule ?? 'exact';
}
