import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { EXIT, Misuse, runCommand, type Exit, type Workplace } from './command.js';
import { LoadBar } from './load-bar.js';

/**
 * `npm run rebuild -- --dataset FILE_OR_URL --force`: builds a new generation and flips to it, as `/rebuild` does, with
 * the server's own configuration. Exit codes: 0 done, 1 failed, 2 misused, 3 another rebuild is running.
 */

const USAGE = 'usage: npm run rebuild -- [--dataset FILE_OR_URL] [--force]';

const bar = new LoadBar(process.stdout);

function readArguments(): { dataset: string | undefined; force: boolean } {
  try {
    const { values } = parseArgs({
      options: { dataset: { type: 'string' }, force: { type: 'boolean', default: false } },
    });
    return { dataset: values.dataset, force: values.force };
  } catch (error) {
    throw new Misuse(`${(error as Error).message}\n${USAGE}`);
  }
}

/** A path is meant from where npm was called. */
function urlOf(dataset: string): string {
  if (/^(https?|file):/.test(dataset)) return dataset;
  return pathToFileURL(resolve(process.env['INIT_CWD'] ?? '.', dataset)).href;
}

async function rebuild({ rebuilds }: Workplace, force: boolean): Promise<Exit> {
  const answer = await rebuilds.start({ force });
  if (!answer.accepted) {
    const { phase, rows, startedAt } = answer.progress;
    console.error(`another rebuild is running since ${startedAt}: ${phase}, ${rows} rows`);
    return EXIT.busy;
  }
  const outcome = await answer.outcome;
  bar.end();
  if ('stopped' in outcome) {
    console.error('stopped; what was served before is served on');
    return EXIT.stopped;
  }
  if ('failure' in outcome) {
    console.error(`the rebuild failed, what was served before is served on: ${outcome.failure.reason}`);
    return EXIT.failed;
  }
  console.log(`Serving ${outcome.index} now.`);
  return EXIT.done;
}

try {
  const { dataset, force } = readArguments();
  const env = { ...process.env, ...(dataset === undefined ? {} : { DATASET_URL: urlOf(dataset) }) };
  await runCommand({ env, onRebuild: bar.show }, (workplace) => rebuild(workplace, force));
} catch (error) {
  if (!(error instanceof Misuse)) throw error;
  console.error(error.message);
  process.exitCode = EXIT.misused;
}
