import { parseArgs } from 'node:util';
import * as z from 'zod';
import { datasetUrl } from '../config/addresses.js';
import { ConfigError } from '../config/config.js';
import { differingVariables } from '../rebuild/built-from.js';
import { rebuildForServer } from '../rebuild/process/forked-rebuild.js';
import { acquireAndRebuild } from '../rebuild/process/locked-rebuild.js';
import { Progress } from '../rebuild/process/progress.js';
import type { StartOptions } from '../rebuild/process/rebuild-process.js';
import type { RebuildContext } from '../rebuild/rebuild-context.js';
import { EXIT, readArguments, type Exit } from './command.js';
import { printSkipped, urlOf } from './dataset-input.js';
import { ProgressBar } from './progress-bar.js';
import { runRegistryCommand } from './registry-command.js';

/**
 * `npm run rebuild -- --dataset FILE_OR_URL --force`: builds a new snapshot and flips to it. `/rebuild` runs this
 * program, too. Exit codes: 0 done, 1 failed, 2 misused, 3 another rebuild is running, 130 stopped.
 */

const USAGE = 'usage: npm run rebuild -- [--dataset FILE_OR_URL] [--force]';

function parseArguments() {
  const { values } = parseArgs({
    options: {
      dataset: { type: 'string' },
      force: { type: 'boolean', default: false },
      'skip-if': { type: 'string' },
    },
  });
  const { dataset, force, 'skip-if': skipIf } = values;
  const checked = datasetUrl.optional().safeParse(dataset === undefined ? undefined : urlOf(dataset));
  const [fault] = checked.error?.issues ?? [];
  if (fault !== undefined) throw new Error(`--dataset, if it is a URL, ${fault.message}`);
  return {
    env: { ...process.env, ...(dataset === undefined ? {} : { DATASET_URL: urlOf(dataset) }) },
    isOther: dataset !== undefined,
    options: {
      force,
      skipIf: z.enum(['unchanged', 'served']).optional().parse(skipIf),
    },
  };
}

/**
 * Checks that the variables that differ from the served snapshot are set, because a terminal may lack variables of the
 * server. An empty variable counts as set. If `DATASET_FORMAT` is set to another format, no other variable is required.
 * @throws {ConfigError} with the names of variables that the served snapshot was built with and that are not set.
 */
function assertComplete({ config, snapshots }: RebuildContext, env: NodeJS.ProcessEnv): void {
  const meta = snapshots.current?.meta;
  const differing = meta === undefined ? [] : differingVariables(config, meta.built_from);
  if (env['DATASET_FORMAT'] !== undefined && differing.includes('DATASET_FORMAT')) return;
  // The address of the bundled dataset depends on the folder of the clone that built the snapshot.
  const unset = differing.filter(
    (name) => env[name] === undefined && (name !== 'DATASET_URL' || meta?.is_sample !== true),
  );
  if (unset.length === 0) return;
  throw new ConfigError(
    `${unset.join(', ')} must be set as for the server, whose snapshot was built with it, or to nothing to build without it`,
  );
}

async function rebuild(context: RebuildContext, signal: AbortSignal, options: StartOptions): Promise<Exit> {
  const bar = new ProgressBar(process.stdout, signal);
  const progress = new Progress(new Date(), bar.show);
  const outcome = await acquireAndRebuild(context, { ...options, progress, signal });
  bar.end();
  if (outcome === undefined) {
    const { phase, rows, startedAt } = (await context.status?.progress()) ?? progress.report;
    console.error(`another rebuild has been running since ${startedAt}: ${phase}, ${rows} rows`);
    return EXIT.busy;
  }
  if ('stopped' in outcome) {
    console.error('stopped; what is served has not changed');
    return EXIT.stopped;
  }
  if ('failure' in outcome) throw new Error(`the rebuild failed: ${outcome.failure.reason}`);
  const { index, skipped, warning } = outcome;
  if (skipped !== undefined) printSkipped(skipped);
  if (warning !== undefined) console.error(warning);
  console.log(index === undefined ? 'Nothing has changed.' : `Serving ${index} now.`);
  return EXIT.done;
}

async function main(): Promise<void> {
  const given = readArguments(USAGE, parseArguments);
  if (given === undefined) return;
  const { env, isOther, options } = given;
  if (process.send === undefined) {
    await runRegistryCommand(env, (context, signal) => {
      if (!isOther) assertComplete(context, env);
      return rebuild(context, signal, options);
    });
  } else await rebuildForServer(env, options);
}

void main();
