import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { HeldLock } from '../rebuild/held-lock.js';
import { rollBack } from '../publish/rollback.js';
import type { RebuildContext } from '../rebuild/rebuild-context.js';
import { EXIT, readArguments, type Exit } from './command.js';
import { runRegistryCommand } from './registry-command.js';

const USAGE = 'usage: npm run rollback, which switches to the previous snapshot, and back if it is run again';

/**
 * `npm run rollback`: switches to the previous snapshot at once. A second run switches back. Exit codes: 0 done, 1
 * failed, 2 misused, 3 a rebuild is running, 130 stopped.
 */
async function rollback({ client, states, alias, log }: RebuildContext): Promise<Exit> {
  const owner = randomUUID();
  const state = await states.acquire(owner, { phase: 'flipping' });
  if (state.owner !== owner) {
    console.error('a rebuild is running: stop it, because it will delete the previous snapshot');
    return EXIT.busy;
  }
  const lock = new HeldLock(states, owner, log);
  try {
    console.log(`Serving ${await rollBack(client, alias, { signal: lock.lost, log })} now.`);
    return EXIT.done;
  } finally {
    await lock.release();
  }
}

if (readArguments(USAGE, parseArgs) !== undefined) await runRegistryCommand(process.env, rollback);
