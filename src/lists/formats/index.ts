import { crates } from './crates.js';
import { csv } from './csv.js';
import { debian } from './debian.js';
import { json } from './json.js';
import { jsonl } from './jsonl.js';
import { lines } from './lines.js';
import { npm } from './npm.js';
import { packagist } from './packagist.js';
import { pypi } from './pypi.js';
import { rubygems } from './rubygems.js';

/**
 * The formats of lists, by the values of `DATASET_FORMAT`. Large libraries that only formats need are loaded when a
 * list is read.
 */
export const FORMATS = { csv, jsonl, lines, json, pypi, npm, crates, rubygems, packagist, debian };
