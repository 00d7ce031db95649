import { Progress } from '../../src/rebuild/progress.js';
import { createLogger } from '../../src/util/log.js';

/** The options of a step of a rebuild that nothing stops. */
export const STEP = { signal: new AbortController().signal, log: createLogger('silent') };

export type LogLine = Partial<Record<string, unknown>> & { msg: string; reason?: string; err?: Error };

/** Options of a step whose retries are quick, with what it logs. */
export function loggedStep() {
  const logged: LogLine[] = [];
  const write = (line: string) => logged.push(JSON.parse(line) as LogLine);
  return { ...STEP, log: createLogger('warn', { destination: { write } }), pauseMs: 1, logged };
}

/** The options of a rebuild that nobody else disturbs. */
export const UNLOCKED = { signal: STEP.signal, progress: new Progress(), renew: () => Promise.resolve() };
