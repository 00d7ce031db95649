import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { firstPlausibleDate } from '../src/rebuild/dataset/dates.js';
import { writeDebianDataset, type DebianDatasetOptions } from './debian-dataset.js';
import { isUrl } from './packages-file.js';

/**
 * `npm run dataset:debian -- PACKAGES … --output FILE`: makes a dataset from Debian's `Packages` indices.
 * Exit codes: 0 done, 1 failed, 2 misused.
 */

const USAGE =
  'usage: npm run dataset:debian -- PACKAGES_FILE_OR_URL … --output FILE [--numbers EARLIER_CSV] [--date ISO_DATE]';

const ISO_DATE = z.union([z.iso.date(), z.iso.datetime({ offset: true })]);

/** @throws {Error} naming the invalid argument. */
function readArguments(): DebianDatasetOptions {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { output: { type: 'string' }, numbers: { type: 'string' }, date: { type: 'string' } },
  });
  const { output, numbers, date } = values;
  if (positionals.length === 0) throw new Error('name at least one Packages index');
  if (output === undefined) throw new Error('--output is missing');
  return {
    indices: positionals.map((location) => (isUrl(location) ? location : absolute(location))),
    output: absolute(output),
    numbers: numbers === undefined ? undefined : absolute(numbers),
    date: date === undefined ? undefined : parseDate(date),
  };
}

/** npm runs scripts in the project's folder, but a path is relative to the folder npm was called in. */
function absolute(path: string): string {
  return resolve(process.env['INIT_CWD'] ?? '.', path);
}

function parseDate(text: string): Date {
  const date = ISO_DATE.safeParse(text).success ? firstPlausibleDate(new Date(text)) : undefined;
  if (date === undefined) {
    throw new Error(
      '--date must be an ISO 8601 date after 1970 and not in the future, such as 2026-01-31T12:00:00Z',
    );
  }
  return date;
}

async function main(): Promise<void> {
  let options: DebianDatasetOptions;
  try {
    options = readArguments();
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`);
    process.exitCode = 2;
    return;
  }
  try {
    const { packages, date } = await writeDebianDataset(options);
    console.log(`Wrote ${packages} packages of ${date.toISOString()} to ${options.output}.`);
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  }
}

await main();
