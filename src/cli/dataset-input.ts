import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { SkippedRows } from '../rebuild/dataset/bad-rows.js';

/** The absolute path of a file. npm runs commands in the project's folder, but a path is relative to the folder where npm was called. */
export function pathOf(file: string): string {
  return resolve(process.env['INIT_CWD'] ?? '.', file);
}

/** The address of a dataset that is given as an address or a path. */
export function urlOf(dataset: string): string {
  return /^(file:|[\w+.-]+:\/\/)/i.test(dataset) ? dataset : pathToFileURL(pathOf(dataset)).href;
}

/** Prints which invalid rows were skipped, if any. */
export function printSkipped({ count, first }: SkippedRows): void {
  if (count === 0) return;
  const shown = first.length < count ? `, the first ${first.length} of them` : '';
  const rows = count === 1 ? '1 invalid row was' : `${count} invalid rows were`;
  console.error([`${rows} skipped${shown}:`, ...first].join('\n'));
}
