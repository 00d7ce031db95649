import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { changesIndexOf, snapshotIdOf } from '../../../src/search/index-names.js';
import { waitFor } from '../../support/wait-for.js';
import type { Fault } from './fault.js';
import { rollingRestart } from './process-faults.js';

/** How long the replicas refresh by themselves, and how often the dataset changes meanwhile, in milliseconds. */
const REFRESHED_MS = 20_000;
const CHANGE_MS = 4000;

const ROLLBACK_TIMEOUT_MS = 20_000;

export const operatorFaults: Fault[] = [
  {
    name: 'a rollback',
    rows: ['rebuilds, rollbacks and kills in random order'],
    inject: async (stack) => {
      const before = await stack.previousIndex();
      const code = await stack.command('dist/cli/rollback.js');
      if (code !== 0 || (await stack.servedIndex()) !== before)
        throw new Error(`rollback: exit code ${code}`);
      await pause(2000);
      await stack.rebuild();
    },
  },
  {
    name: 'changes deleted by hand',
    rows: ['an index of changes is deleted by hand'],
    permits: ({ endpoint }, { status }) =>
      (endpoint === '/changes' && status === 410) || (endpoint === '/changes.atom' && status === 503),
    inject: async (stack) => {
      const served = snapshotIdOf((await stack.servedIndex()) ?? '');
      await stack.elasticsearch.indices.delete(
        { index: changesIndexOf(stack.alias, served) },
        // There is none after a rebuild that started a new chain.
        { ignore: [404] },
      );
      await pause(2000);
      await stack.rebuild();
      await pause(2000);
      // Two new chains, so that neither the served nor the previous snapshot needs the deleted index.
      await stack.rebuildFrom(stack.renamed);
      await stack.rebuild();
      // The first responses from the new snapshot.
      await pause(2000);
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
          stack.nextVariant();
          await pause(CHANGE_MS);
        }
        await stack.idle();
        // Exit code 3 while a refresh checks whether the dataset has changed.
        const rolledBack = async () => (await stack.command('dist/cli/rollback.js')) === 0;
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
  {
    name: 'a registry with a similar name',
    rows: ['another registry, named alike, does anything ¹'],
    inject: async (stack) => {
      const sibling = `${stack.slug}-packages`;
      const file = join(stack.folder, 'sibling.csv');
      await writeFile(file, stack.variant.csv);
      for (const [script, ...args] of [
        ['dist/cli/rebuild.js', '--dataset', file],
        ['dist/cli/rebuild.js', '--dataset', file],
        ['dist/cli/rollback.js'],
      ] as [string, ...string[]][]) {
        const code = await stack.command(script, args, sibling);
        if (code !== 0) throw new Error(`${script} of another registry: exit code ${code}`);
      }
      const found = await stack.elasticsearch.indices.get({ index: `${sibling}-packages-*` });
      await stack.elasticsearch.indices.delete({ index: Object.keys(found) });
    },
  },
];
