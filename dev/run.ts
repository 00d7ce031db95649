import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Identity } from './paths.js';

interface RunOptions {
  cwd?: string;
  /** The program's whole environment. By default, it is the environment of this process. */
  env?: NodeJS.ProcessEnv;
  runAs?: Identity | undefined;
  signal?: AbortSignal;
  timeoutMs?: number;
}

const execute = promisify(execFile);

/** Runs a program to its end and returns its output. @throws {Error} with its error output, if it fails. */
export async function run(command: string, args: string[], options: RunOptions = {}): Promise<string> {
  const { runAs, timeoutMs = 0, ...others } = options;
  const { stdout } = await execute(command, args, {
    ...others,
    ...runAs,
    timeout: timeoutMs,
    maxBuffer: 64 * 2 ** 20,
  });
  return stdout;
}
