import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManagedProcess } from '../../dev/managed-process.js';

/** Starts programs in a temporary folder, which is removed after the tests of the suite. */
export function useManagedPrograms() {
  let folder: string;
  before(async () => (folder = await mkdtemp(join(tmpdir(), 'package-registry-search-test-'))));
  after(() => rm(folder, { recursive: true }));

  /** Runs a script until its output contains a text. @returns the process and its output so far. */
  return async (script: string, argument: string, awaited: string) => {
    const logFile = join(folder, 'log');
    const command = [process.execPath, '-e', script, argument];
    const program = new ManagedProcess(command, { cwd: folder, env: {}, runAs: undefined, logFile });
    const output = () => readFileSync(logFile, 'utf8');
    const isReady = () => Promise.resolve(output().includes(awaited));
    await program.waitUntil(isReady, 'The program', 15_000, new AbortController().signal);
    return { program, output: output() };
  };
}
