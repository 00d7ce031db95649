import type { DatasetFormat } from '../../../config/dataset-format.js';
import { crates } from './crates.js';
import { debian } from './debian.js';
import type { Format } from './format.js';
import { json } from './json.js';
import { jsonl } from './jsonl.js';
import { lines } from './lines.js';
import { npm } from './npm.js';
import { packagist } from './packagist.js';
import { pypi } from './pypi.js';
import { rubygems } from './rubygems.js';

/** The formats that are converted to CSV. */
export const FORMATS: Record<Exclude<DatasetFormat, 'csv'>, Format> = {
  crates,
  debian,
  json,
  jsonl,
  lines,
  npm,
  packagist,
  pypi,
  rubygems,
};
