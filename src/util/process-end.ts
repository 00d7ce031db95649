import { isatty } from 'node:tty';
import { createRedactor } from './redact.js';

/**
 * Time within which a second signal counts as a duplicate, in milliseconds. The terminal sends Ctrl-C to npm and to its
 * child, and npm forwards the signal to the child again.
 */
const DUPLICATE_MS = 500;

/**
 * Ignores SIGHUP if none of the standard streams is a terminal. A process started with `nohup` needs this, because Node
 * resets the setting of `nohup` that ignores SIGHUP.
 * @returns whether there is a terminal.
 */
function ignoreHangup(): boolean {
  const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
  if (!hasTerminal) process.on('SIGHUP', () => undefined);
  return hasTerminal;
}

/** Ignores SIGUSR1, which opens Node's inspector, and SIGUSR2, which ends a process without a handler. */
export function ignoreUserSignals(): void {
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => undefined);
}

/**
 * Ends the process with `code` on SIGINT and SIGTERM as long as there is no other handler. Without any handler, the
 * first process of a container would ignore these signals.
 */
export function endOnStopSignal(code: number): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(code);
    });
  }
}

/**
 * Aborts on the first stop signal: Ctrl-C, SIGTERM, or the end of the terminal. A later signal ends the process at
 * once, unless it comes within `DUPLICATE_MS` of the first.
 */
export function abortOnStopSignal(): AbortSignal {
  const stopping = new AbortController();
  let stoppedAt: number | undefined;
  const take = () => {
    if (stoppedAt !== undefined && Date.now() - stoppedAt > DUPLICATE_MS) process.exit(130);
    stoppedAt ??= Date.now();
    stopping.abort();
  };
  const signals = ['SIGINT', 'SIGTERM', ...(ignoreHangup() ? (['SIGHUP'] as const) : [])] as const;
  for (const signal of signals) process.on(signal, take);
  return stopping.signal;
}

/** Maximum number of causes in the description. Longer chains of causes are usually circular. */
const MAX_CAUSES = 5;

/** The stacks of an error and its causes, without secrets. Node's own output would include all fields of the error. */
export function describeCrash(error: unknown, secrets: readonly string[]): string {
  const redact = createRedactor(secrets);
  if (!(error instanceof Error)) return `a ${typeof error} was thrown`;
  const stacks: string[] = [];
  for (let at: unknown = error; at instanceof Error && stacks.length <= MAX_CAUSES; at = at.cause) {
    stacks.push(redact(at.stack ?? at.message));
  }
  return stacks.join('\ncaused by: ');
}

/** Ends the process with code 1 on an uncaught error, like Node, but prints no secrets. */
export function endOnCrash(secrets: readonly string[]): void {
  process.on('uncaughtException', (error) => {
    console.error(describeCrash(error, secrets));
    process.exit(1);
  });
}
