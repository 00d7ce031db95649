import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, stat } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PROJECT_FOLDER } from '../src/util/project-folder.js';
import { ManagedProcess } from './managed-process.js';

const SOURCES = fileURLToPath(new URL('src/', PROJECT_FOLDER));
const SETUP = fileURLToPath(new URL('scripts/setup.mjs', PROJECT_FOLDER));
const START = fileURLToPath(new URL('start.js', import.meta.url));

/** Interval of polling the source files, in milliseconds. `fs.watch` misses changes on some file systems. */
const POLL_MS = 300;

/**
 * `npm run dev`: runs the service in a child process, on engines that are running already. When a source file changes,
 * builds the project and restarts the child process. If the build fails, its errors are printed, and the old child
 * process keeps serving.
 * @param env with the addresses of the engines.
 * @param signal ends the watch and the child process.
 */
export async function serveAndWatch(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<never> {
  const command = [process.execPath, ...process.execArgv, START];
  let server: ManagedProcess | undefined;
  try {
    for (let seen = 0; ;) {
      const changed = await lastChange();
      if (changed !== seen && (await build())) {
        await server?.stop();
        signal.throwIfAborted();
        server = new ManagedProcess(command, {
          cwd: process.cwd(),
          env,
          runAs: undefined,
          logFile: undefined,
        });
      }
      seen = changed;
      await pause(POLL_MS, undefined, { signal });
    }
  } finally {
    await server?.stop();
  }
}

/**
 * Time of the last change of a source file or folder, in milliseconds since the epoch. Creating, renaming or deleting a
 * file changes its folder.
 */
async function lastChange(): Promise<number> {
  const paths = ['', ...(await readdir(SOURCES, { recursive: true }))];
  // A file may be deleted meanwhile.
  const files = await Promise.all(paths.map((path) => stat(SOURCES + path).catch(() => undefined)));
  return Math.max(...files.map((file) => file?.mtimeMs ?? 0));
}

/**
 * Builds the project if a source is newer than `dist`. The build cannot be aborted, because an abort would leave
 * incomplete output.
 * @returns whether the build succeeded.
 */
async function build(): Promise<boolean> {
  const [code] = (await once(spawn(process.execPath, [SETUP, '--build'], { stdio: 'inherit' }), 'exit')) as [
    number | null,
  ];
  return code === 0;
}
