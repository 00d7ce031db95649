import { createLogger } from '../../src/util/log.js';

/** The options of a step of a rebuild that nothing stops. */
export const STEP = { signal: new AbortController().signal, log: createLogger('silent') };
