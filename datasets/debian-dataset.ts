import { writeFile } from 'node:fs/promises';
import { assignNumbers, encodeDataset, readNumbers } from './dataset-file.js';
import { compareVersions } from '../src/rebuild/dataset/formats/debian-version.js';
import { decompress, loadFile, sourceDate, type LoadedFile } from './packages-file.js';
import { readStanzas } from './stanzas.js';

const PACKAGE_PAGE = 'https://tracker.debian.org/pkg/';

export interface DebianDatasetOptions {
  /** Paths and http(s) URLs of `Packages` indices: plain, gzip or xz. */
  indices: string[];
  /** Path of the file to write. */
  output: string;
  /** Path of an earlier dataset, whose names keep their numbers. */
  numbers?: string | undefined;
  /** Date of the dataset; by default the newest date of the indices. */
  date?: Date | undefined;
}

/**
 * Writes a dataset of all packages in the indices, each with its highest version.
 * @returns the number of packages, and the date in the gzip header.
 * @throws {Error} with the file and the reason, before anything is written.
 */
export async function writeDebianDataset(
  options: DebianDatasetOptions,
): Promise<{ packages: number; date: Date }> {
  const files: LoadedFile[] = [];
  for (const location of options.indices) files.push(await loadFile(location));
  const date = options.date ?? (await newestDate(files));
  const versions = await highestVersions(files);
  const earlier =
    options.numbers === undefined ? new Map<string, number>() : await readNumbers(options.numbers);
  const rows = assignNumbers([...versions.keys()], earlier).map(({ no, name }) => {
    return { no, name, version: versions.get(name) ?? '', url: PACKAGE_PAGE + name };
  });
  await writeFile(options.output, encodeDataset(rows, date));
  return { packages: rows.length, date };
}

async function newestDate(files: readonly LoadedFile[]): Promise<Date> {
  const times: number[] = [];
  for (const file of files) {
    const date = await sourceDate(file);
    if (date !== undefined) times.push(date.getTime());
  }
  // The current time would give a different file for the same input.
  if (times.length === 0) throw new Error('the indices have no date: add one with --date');
  return new Date(Math.max(...times));
}

async function highestVersions(files: readonly LoadedFile[]): Promise<Map<string, string>> {
  const versions = new Map<string, string>();
  for (const file of files) {
    try {
      for (const { name, version } of readStanzas((await decompress(file.bytes)).toString())) {
        const known = versions.get(name);
        if (known === undefined || compareVersions(version, known) > 0) versions.set(name, version);
      }
    } catch (error) {
      throw new Error(`${file.location}: ${(error as Error).message}`, { cause: error });
    }
  }
  return versions;
}
