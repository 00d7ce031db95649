import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import * as z from 'zod';
import { datasetUrl } from '../config/addresses.js';
import { ConfigError, readConfig } from '../config/config.js';
import { differingVariables } from '../rebuild/built-from.js';
import { PHASES } from '../rebuild/progress.js';
import { createRebuildContext, type RebuildContext } from '../rebuild/rebuild-context.js';
import type { StartOptions } from '../rebuild/rebuild-service.js';
import type { EndedRebuild } from '../rebuild/state.js';
import { rebuildUnderLock } from '../rebuild/under-lock.js';
import { createLogger, terminalOutput } from '../util/log.js';
import { abortOnStopSignal } from '../util/process-end.js';
import { EXIT, exitWith, printSkipped, readArguments, urlOf, type Exit } from './command.js';
import { ProgressBar } from './progress-bar.js';
import { runRegistryCommand } from './registry-command.js';

/**
 * `npm run rebuild -- --dataset FILE_OR_URL --force`: builds a new snapshot and flips to it. A server runs this program
 * with `--owner` after it has taken the lock. Exit codes: 0 done, 1 failed, 2 misused, 3 another rebuild is running, 130
 * stopped.
 */

const USAGE = 'usage: npm run rebuild -- [--dataset FILE_OR_URL] [--force] | --history';

/** Number of ended rebuilds that `--history` prints. */
const SHOWN = 10;

function parseArguments() {
  const { values } = parseArgs({
    options: {
      dataset: { type: 'string' },
      force: { type: 'boolean', default: false },
      history: { type: 'boolean', default: false },
      owner: { type: 'string' },
      'skip-if': { type: 'string' },
    },
  });
  const { dataset, force, history, owner, 'skip-if': skipIf } = values;
  const checked = datasetUrl.optional().safeParse(dataset === undefined ? undefined : urlOf(dataset));
  const [fault] = checked.error?.issues ?? [];
  if (fault !== undefined) throw new Error(`--dataset, if it is a URL, ${fault.message}`);
  return {
    env: { ...process.env, ...(dataset === undefined ? {} : { DATASET_URL: urlOf(dataset) }) },
    isOther: dataset !== undefined,
    history,
    owner,
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
  const owner = randomUUID();
  const state = await context.states.acquire(owner);
  if (state.owner !== owner) {
    const { phase, rows, started_at = 0 } = state;
    const since = new Date(started_at).toISOString();
    console.error(`another rebuild has been running since ${since}: ${phase}, ${rows} rows`);
    return EXIT.busy;
  }
  const bar = new ProgressBar(process.stdout, signal);
  const { outcome, reason, built } = await rebuildUnderLock(context, owner, {
    ...options,
    signal,
    onProgress: bar.show,
  });
  bar.end();
  if (outcome === 'stopped') {
    console.error('stopped; what is served has not changed');
    return EXIT.stopped;
  }
  if (outcome === 'failed') throw new Error(`the rebuild failed: ${reason}`);
  if (built?.skipped !== undefined) printSkipped(built.skipped);
  if (built?.warning !== undefined) console.error(built.warning);
  console.log(built === undefined ? 'Nothing has changed.' : `Serving ${built.index} now.`);
  return EXIT.done;
}

/** Rebuilds for a server, which has taken the lock. The log is that of the server. */
function rebuildForServer(env: NodeJS.ProcessEnv, owner: string, options: StartOptions): Promise<void> {
  return exitWith(env, async () => {
    const config = readConfig(env);
    const { logLevel, secrets } = config;
    const log = createLogger(logLevel, { secrets, destination: await terminalOutput() });
    const context = createRebuildContext(config, log);
    const { outcome } = await rebuildUnderLock(context, owner, { ...options, signal: abortOnStopSignal() });
    await context.close();
    return { rebuilt: EXIT.done, unchanged: EXIT.done, stopped: EXIT.stopped, failed: EXIT.failed }[outcome];
  });
}

/** Prints the last rebuilds, one a line: when it ended, its outcome, packages, seconds of each phase, and the reason. */
async function printHistory({ states }: RebuildContext): Promise<Exit> {
  for (const ended of await states.history(SHOWN)) console.log(describe(ended));
  return EXIT.done;
}

function describe({ ended_at, outcome, packages, seconds = {}, reason }: EndedRebuild): string {
  // Elasticsearch keeps no order of members that a script has set.
  const phases = PHASES.flatMap((phase) =>
    seconds[phase] === undefined ? [] : [`${phase} ${seconds[phase].toFixed(1)}`],
  );
  const parts = [
    new Date(ended_at).toISOString(),
    outcome,
    packages && `${packages} packages`,
    phases.length > 0 && `${phases.join(', ')} s`,
    reason,
  ];
  return parts.filter(Boolean).join(' | ');
}

async function main(): Promise<void> {
  const given = readArguments(USAGE, parseArguments);
  if (given === undefined) return;
  const { env, isOther, history, owner, options } = given;
  if (owner !== undefined) {
    await rebuildForServer(env, owner, options);
    // Idle connections and timers would keep the process alive for seconds.
    process.exit();
  }
  await runRegistryCommand(env, (context, signal) => {
    if (history) return printHistory(context);
    if (!isOther) assertComplete(context, env);
    return rebuild(context, signal, options);
  });
}

void main();
