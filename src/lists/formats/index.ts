/**
 * The formats of lists. The names of the exports are the values of `DATASET_FORMAT`. Libraries that only one format
 * needs are loaded when a list is read.
 */
export { crates } from './crates.js';
export { csv } from './csv.js';
export { debian } from './debian.js';
export { json } from './json.js';
export { jsonl } from './jsonl.js';
export { lines } from './lines.js';
export { npm } from './npm.js';
export { packagist } from './packagist.js';
export { pypi } from './pypi.js';
export { rubygems } from './rubygems.js';
