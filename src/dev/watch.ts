import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, stat } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PROJECT_FOLDER } from '../project-folder.js';
import { ManagedProcess } from './managed-process.js';

const SOURCES = fileURLToPath(new URL('src/', PROJECT_FOLDER));
const SETUP = fileURLToPath(new URL('scripts/setup.mjs', PROJECT_FOLDER));
const START = fileURLToPath(new URL('start.js', import.meta.url));

/** Pause between two looks at the sources, in milliseconds. Watching folders misses changes on some file systems. */
const POLL_MS = 300;

/**
 * `npm run dev`: runs `npm start` on running engines in a process of its own, and after each change of a source it builds
 * and starts that again. Sources that cannot be built change nothing: the messages of the build say why.
 * @param env with the addresses of the engines.
 * @param signal ends it, and the process.
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

/** When a source was changed last; its folder changes if it is created, renamed or deleted. */
async function lastChange(): Promise<number> {
  const paths = await readdir(SOURCES, { recursive: true });
  // One may be deleted meanwhile.
  const files = await Promise.all(paths.map((path) => stat(SOURCES + path).catch(() => undefined)));
  return Math.max(...files.map((file) => file?.mtimeMs ?? 0));
}

/** Builds what has changed. @returns whether it could be built. It is not aborted, so that it leaves nothing half. */
async function build(): Promise<boolean> {
  const [code] = (await once(spawn(process.execPath, [SETUP, '--build'], { stdio: 'inherit' }), 'exit')) as [
    number | null,
  ];
  return code === 0;
}
