import * as FORMATS from '../lists/formats/index.js';
import type { Format } from '../lists/formats/format.js';
import type { NameRule } from '../util/name-rule.js';

export type DatasetFormat = keyof typeof FORMATS;

export const DATASET_FORMATS = Object.keys(FORMATS) as [DatasetFormat, ...DatasetFormat[]];

export function defaultNameRule(format: DatasetFormat): NameRule {
  const { nameRule }: Format = FORMATS[format];
  return nameRule ?? 'exact';
}
