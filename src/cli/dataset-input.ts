import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { PROJECT_FOLDER } from '../util/project-folder.js';
import type { SkippedRows } from '../lists/fetch/dataset-error.js';

/**
 * The absolute path of a file that is given relative to the caller's folder. npm runs commands in the project's folder,
 * and sets `INIT_CWD` to the caller's folder. If an npm script of another package starts the command, `INIT_CWD` is the
 * folder from which that script was called. It is then ignored, and paths are relative to the current folder.
 */
export function pathOf(file: string): string {
  const { INIT_CWD: calledIn = '.', npm_package_json: manifest = 'package.json' } = process.env;
  const own = fileURLToPath(new URL('package.json', PROJECT_FOLDER));
  const isRunByNpm = existsSync(manifest) && realpathSync(manifest) === own;
  return resolve(isRunByNpm ? calledIn : '.', file);
}

export function urlOf(dataset: string): string {
  return /^(file:|[\w+.-]+:\/\/)/i.test(dataset) ? dataset : pathToFileURL(pathOf(dataset)).href;
}

export function printSkipped({ count, first }: SkippedRows): void {
  if (count === 0) return;
  const shown = first.length < count ? `, the first ${first.length} of them` : '';
  const rows = count === 1 ? '1 invalid row was' : `${count} invalid rows were`;
  console.error([`${rows} skipped${shown}:`, ...first].join('\n'));
}
