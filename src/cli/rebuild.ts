import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { datasetFault } from '../config-urls.js';
import { EXIT, runCommand, type CommandContext, type Exit } from './command.js';
import { RebuildService } from '../rebuild/rebuild-service.js';
import { ProgressBar } from './progress-bar.js';

/**
 * `npm run rebuild -- --dataset FILE_OR_URL --force`: builds a new generation and flips to it, as `/rebuild`
 * does, with the server's own configuration. Exit codes: 0 done, 1 failed, 2 misused, 3 another rebuild is
 * running.
 */

const USAGE = 'usage: npm run rebuild -- [--dataset FILE_OR_URL] [--force]';

/** @returns undefined if they are invalid, after printing why. */
function readArguments(): { dataset?: string | undefined; force: boolean } | undefined {
  try {
    const { values } = parseArgs({
      options: { dataset: { type: 'string' }, force: { type: 'boolean', default: false } },
    });
    const fault = values.dataset === undefined ? undefined : datasetFault(urlOf(values.dataset));
    if (fault !== undefined) throw new Error(`--dataset, if it is a URL, ${fault}`);
    return values;
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`);
    process.exitCode = EXIT.misused;
    return undefined;
  }
}

/** A path is relative to the folder where npm was called. */
function urlOf(dataset: string): string {
  if (/^(file:|[\w+.-]+:\/\/)/i.test(dataset)) return dataset;
  return pathToFileURL(resolve(process.env['INIT_CWD'] ?? '.', dataset)).href;
}

async function rebuild({ rebuildContext, secrets, signal }: CommandContext, force: boolean): Promise<Exit> {
  const bar = new ProgressBar(process.stdout, signal);
  const rebuilds = new RebuildService(rebuildContext, { secrets, onProgress: bar.show });
  signal.addEventListener('abort', () => void rebuilds.stop());
  const answer = await rebuilds.start({ force });
  if (!answer.accepted) {
    const { phase, rows, startedAt } = answer.progress;
    console.error(`another rebuild has been running since ${startedAt}: ${phase}, ${rows} rows`);
    return EXIT.busy;
  }
  const outcome = await answer.outcome;
  bar.end();
  if ('stopped' in outcome) {
    console.error('stopped; what is served has not changed');
    return EXIT.stopped;
  }
  if ('failure' in outcome) {
    const { failure, details } = outcome;
    throw new Error(`the rebuild failed: ${failure.reason}${details === '' ? '' : ` (${details})`}`);
  }
  const { index, skipped = { count: 0, first: [] } } = outcome;
  if (skipped.count > 0) {
    const shown = skipped.first.length < skipped.count ? `, the first ${skipped.first.length} of them` : '';
    const rows = skipped.count === 1 ? '1 invalid row was' : `${skipped.count} invalid rows were`;
    console.error([`${rows} skipped${shown}:`, ...skipped.first].join('\n'));
  }
  console.log(`Serving ${index} now.`);
  return EXIT.done;
}

const given = readArguments();
if (given !== undefined) {
  const { dataset, force } = given;
  const env = { ...process.env, ...(dataset === undefined ? {} : { DATASET_URL: urlOf(dataset) }) };
  await runCommand(env, (context) => rebuild(context, force));
}
