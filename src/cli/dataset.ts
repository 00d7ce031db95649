import { access, constants } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import * as z from 'zod';
import { ConfigError, readDatasetConfig, type DatasetConfig } from '../config/config.js';
import { assignNumbers, readList, readNumbers, writeDataset } from '../lists/dataset-file.js';
import { firstPlausibleDate } from '../lists/fetch/dates.js';
import { EXIT, exitWith, pathOf, printSkipped, readArguments, urlOf, type Exit } from './command.js';
import { ProgressBar } from './progress-bar.js';
import { abortOnStopSignal } from '../util/process-end.js';

/**
 * `npm run dataset -- --format F --url ADDRESS --output FILE`: writes the list of a registry as a dataset, without
 * Elasticsearch. Exit codes: 0 done, 1 failed, 2 misused, 130 stopped. Nothing is written if the list is incomplete, or
 * has more than `DATASET_MAX_BAD_ROWS` invalid rows.
 */

const USAGE = `usage: npm run dataset -- --output FILE.csv.gz [--format FORMAT] [--url FILE_OR_URL …] [--template TEMPLATE]
  [--json PATHS] [--numbers-of EARLIER.csv.gz] [--date ISO_DATE]
--format, --url, --template and --json stand for DATASET_FORMAT, DATASET_URL, PACKAGE_URL_TEMPLATE and DATASET_JSON.`;

const ISO_DATE = z.union([z.iso.date(), z.iso.datetime({ offset: true })]);

/** In the returned environment, arguments replace variables. */
function parseArguments() {
  const { values } = parseArgs({
    options: {
      format: { type: 'string' },
      url: { type: 'string', multiple: true },
      template: { type: 'string' },
      json: { type: 'string' },
      output: { type: 'string' },
      'numbers-of': { type: 'string' },
      date: { type: 'string' },
    },
  });
  const { format, url, template, json, output, 'numbers-of': earlier, date } = values;
  if (output?.endsWith('.gz') !== true) throw new Error('--output must be a file that ends with .gz');
  return {
    env: {
      ...process.env,
      ...(format === undefined ? {} : { DATASET_FORMAT: format }),
      ...(url === undefined ? {} : { DATASET_URL: url.map(urlOf).join(' ') }),
      ...(template === undefined ? {} : { PACKAGE_URL_TEMPLATE: template }),
      ...(json === undefined ? {} : { DATASET_JSON: json }),
    },
    options: {
      /** Path of the file to write. */
      output: pathOf(output),
      /** Path of an earlier dataset, whose names keep their numbers. */
      earlier: earlier === undefined ? undefined : pathOf(earlier),
      /** Date of the dataset; by default the date of the list. */
      date: date === undefined ? undefined : parseDate(date),
    },
  };
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

async function write(
  config: DatasetConfig,
  { output, earlier, date }: ReturnType<typeof parseArguments>['options'],
  signal: AbortSignal,
): Promise<Exit> {
  // An invalid path must fail now, not after an hour of downloading.
  await access(dirname(output), constants.W_OK);
  const bar = new ProgressBar(process.stdout, signal, 'Dataset');
  const { nameRule } = config;
  try {
    const numbers = earlier === undefined ? undefined : await readNumbers(earlier, config, signal);
    bar.show({ phase: 'downloading', rows: 0 });
    const list = await readList(config, signal, {
      onBytes: (bytes) => bar.show({ phase: 'downloading', rows: 0, bytes }),
      onDownloaded: () => bar.show({ phase: 'checking', rows: 0 }),
    });
    if (!list.isNumbered) assignNumbers(list.packages, numbers ?? new Map(), nameRule);
    else if (numbers !== undefined)
      throw new Error('the list has numbers of its own: leave out --numbers-of');
    const total = list.packages.length;
    bar.show({ phase: 'writing', rows: 0, total_rows: total });
    const takenAt = date ?? list.takenAt;
    const onRows = (rows: number) => bar.show({ phase: 'writing', rows, total_rows: total });
    await writeDataset(output, list.packages, { date: takenAt, signal, onRows });
    bar.end();
    printSkipped(list.skipped);
    console.log(`Wrote ${total} packages of ${takenAt.toISOString()} to ${output}.`);
    return EXIT.done;
  } catch (error) {
    if (!signal.aborted) throw error;
    console.error('stopped; nothing was written');
    return EXIT.stopped;
  } finally {
    bar.end();
  }
}

const given = readArguments(USAGE, parseArguments);
if (given !== undefined) {
  const { env, options } = given;
  await exitWith(env, () => {
    const dataset = readDatasetConfig(env);
    if (dataset.isSample) throw new ConfigError(`--url is missing\n${USAGE}`);
    return write(dataset, options, abortOnStopSignal());
  });
}
