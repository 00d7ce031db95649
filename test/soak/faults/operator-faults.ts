import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { aliasOf, changesIndexOf, snapshotIdOf } from '../../../src/snapshot/index-names.js';
import { waitFor } from '../../support/wait-for.js';
import { fault, type Fault } from './fault.js';
import { rollingRestart } from './process-faults.js';

/** How long the replicas refresh by themselves, and how often the dataset changes meanwhile, in milliseconds. */
const REFRESHED_MS = 20_000;
const CHANGE_MS = 4000;

const ROLLBACK_TIMEOUT_MS = 20_000;

/** Until readers have got responses from another snapshot, in milliseconds. */
const NOTICED_MS = 2000;

const ROLLBACK = 'dist/cli/rollback.js';

export const operatorFaults: Fault[] = [
  fault('a rollback', ['rebuilds, rollbacks and kills in random order'], async (stack) => {
    const before = await stack.previousIndex();
    const code = await stack.command(ROLLBACK);
    if (code !== 0 || (await stack.servedIndex()) !== before) throw new Error(`rollback: exit code ${code}`);
    await pause(NOTICED_MS);
    await stack.rebuild();
  }),
  {
    name: 'changes deleted by hand',
    rows: ['an index of changes is deleted by hand'],
    inject: async (stack) => {
      const served = snapshotIdOf((await stack.servedIndex()) ?? '');
      // There is none after a rebuild that started a new chain.
      const absent = { ignore: [404] };
      const index = changesIndexOf(stack.alias, served);
      await stack.engines.elasticsearch.indices.delete({ index }, absent);
      await pause(NOTICED_MS);
      await stack.rebuild();
      await pause(NOTICED_MS);
      // Two new chains, so that neither the served nor the previous snapshot needs the deleted index.
      await stack.rebuildFrom(stack.renamed);
      await stack.rebuild();
      await pause(NOTICED_MS);
    },
  },
  {
    name: 'periodic refreshes of a dataset that changes, and a rollback',
    rows: ['new every few seconds, three replicas refresh', 'a refresh follows a rollback'],
    endsReplica: true,
    inject: async (stack) => {
      try {
        await rollingRestart(stack, { REBUILD_INTERVAL_SECONDS: '1' });
        for (let ms = 0; ms < REFRESHED_MS; ms += CHANGE_MS) {
          stack.origin.next();
          await pause(CHANGE_MS);
        }
        await stack.idle();
        // Exit code 3 while a refresh checks whether the dataset has changed.
        const rolledBack = async () => (await stack.command(ROLLBACK)) === 0;
        await waitFor(rolledBack, 'the rollback', ROLLBACK_TIMEOUT_MS);
        const served = await stack.servedIndex();
        await pause(CHANGE_MS);
        // A rebuild that has begun takes longer.
        await stack.idle();
        if ((await stack.servedIndex()) !== served) throw new Error('a refresh undid the rollback');
      } finally {
        await rollingRestart(stack);
      }
    },
  },
  fault('a registry named alike', ['another registry, named alike, does anything ¹'], async (stack) => {
    const { indices } = stack.engines.elasticsearch;
    const sibling = `${stack.slug}-packages-v2`;
    const file = join(stack.folder, 'sibling.csv');
    await writeFile(file, stack.origin.variant.csv);
    const rebuild = ['dist/cli/rebuild.js', '--dataset', file];
    for (const [script = '', ...args] of [rebuild, rebuild, [ROLLBACK]]) {
      const code = await stack.command(script, args, sibling);
      if (code !== 0) throw new Error(`${script} of another registry: exit code ${code}`);
    }
    const found = await indices.get({ index: `${aliasOf(sibling)}-*` });
    await indices.delete({ index: Object.keys(found) });
  }),
];
