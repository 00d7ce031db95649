import { setTimeout as pause } from 'node:timers/promises';
import { fault, type Fault } from './fault.js';
import { rollingRestart } from './replica-faults.js';

/** How long the replicas refresh by themselves, and how often the dataset changes meanwhile, in milliseconds. */
const REFRESHED_MS = 20_000;
const CHANGE_MS = 4000;

/** Until readers have got responses from another snapshot, in milliseconds. */
const NOTICED_MS = 2000;

export const snapshotFaults: Fault[] = [
  fault('a rollback', async (stack) => {
    const before = await stack.previousIndex();
    await stack.rollBack();
    if ((await stack.servedIndex()) !== before) throw new Error('the previous snapshot is not served');
    await pause(NOTICED_MS);
    await stack.rebuild();
  }),
  {
    name: 'periodic refreshes of a dataset that changes',
    endsReplica: true,
    inject: async (stack) => {
      try {
        await rollingRestart(stack, { REBUILD_INTERVAL_SECONDS: '1' });
        for (let ms = 0; ms < REFRESHED_MS; ms += CHANGE_MS) {
          stack.origin.next();
          await pause(CHANGE_MS);
        }
      } finally {
        await rollingRestart(stack);
      }
    },
  },
];
