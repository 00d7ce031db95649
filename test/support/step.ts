import { Progress } from '../../src/rebuild/progress.js';
import { createLogger } from '../../src/util/log.js';

/** The options of a step of a rebuild that nothing stops. */
export const STEP = { signal: new AbortController().signal, log: createLogger('silent') };

/** The options of a rebuild that nobody else disturbs. */
export const UNLOCKED = { signal: STEP.signal, progress: new Progress(), renew: () => Promise.resolve() };
