import { rollBack } from '../rebuild/rollback.js';
import { EXIT, runCommand, type CommandContext, type Exit } from './command.js';

/**
 * `npm run rollback`: serves the generation before the current one, at once; called again, it goes back. Exit codes: 0
 * done, 1 failed, 2 misused, 3 a rebuild is running.
 */
async function rollback({ rebuildContext: { client, lock, alias } }: CommandContext): Promise<Exit> {
  const held = await lock.acquire();
  if (held === undefined) {
    console.error('a rebuild is running: wait for its end, or stop it');
    return EXIT.busy;
  }
  try {
    console.log(`Serving ${await rollBack(client, alias, held.lost)} now.`);
    return EXIT.done;
  } finally {
    await held.release();
  }
}

await runCommand(process.env, rollback);
