import { parseArgs } from 'node:util';
import { UNSHARED_LOCK } from '../rebuild/process/lock.js';
import { rollBack } from '../rebuild/rollback.js';
import type { RebuildContext } from '../rebuild/rebuild-context.js';
import { EXIT, readArguments, type Exit } from './command.js';
import { runRegistryCommand } from './registry-command.js';

const USAGE = 'usage: npm run rollback, which switches to the previous snapshot, and back if it is run again';

/**
 * `npm run rollback`: switches to the previous snapshot at once. A second run switches back. Exit codes: 0 done, 1
 * failed, 2 misused, 3 a rebuild is running, 130 stopped.
 */
async function rollback({ client, lock, alias, log }: RebuildContext): Promise<Exit> {
  const held = lock === undefined ? UNSHARED_LOCK : await lock.acquire();
  if (held === undefined) {
    console.error('a rebuild is running: stop it, because it will delete the previous snapshot');
    return EXIT.busy;
  }
  try {
    console.log(`Serving ${await rollBack(client, alias, { signal: held.lost, log })} now.`);
    return EXIT.done;
  } finally {
    await held.release();
  }
}

if (readArguments(USAGE, parseArgs) !== undefined) await runRegistryCommand(process.env, rollback);
