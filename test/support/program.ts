import { ManagedProcess } from '../../dev/managed-process.js';

const STATUS_TIMEOUT_MS = 2000;

interface ProgramOptions {
  /** Its name in error messages. */
  name: string;
  /** The working directory. */
  cwd: string;
  /** The whole environment except PATH. */
  env?: Readonly<Record<string, string>>;
  /** Receives its output. */
  logFile: string;
  timeoutMs: number;
  isReady: () => Promise<boolean>;
}

/**
 * Starts a program that ends with this process, and waits until it is ready.
 * @throws {Error} with the end of its log, if it ends early or is not ready in time.
 */
export async function startProgram(command: string[], options: ProgramOptions): Promise<ManagedProcess> {
  const { name, cwd, env, logFile, timeoutMs, isReady } = options;
  const program = new ManagedProcess(command, {
    cwd,
    env: { PATH: process.env['PATH'], ...env },
    runAs: undefined,
    logFile,
  });
  await program.waitUntil(isReady, name, timeoutMs, new AbortController().signal);
  return program;
}

/** The status of the response at an address; undefined if there is none within two seconds. */
export async function statusOf(url: string): Promise<number | undefined> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(STATUS_TIMEOUT_MS) });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined;
  }
}
