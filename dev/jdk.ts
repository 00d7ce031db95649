import { readdirSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { SetupError } from './service.js';
import type { Identity } from './paths.js';
import { run } from './run.js';

const MIN_VERSION = 21;
/** A module that Elasticsearch's launcher needs, and that a JRE lacks. */
const NEEDED_MODULE = 'jdk.jlink';

/**
 * Finds the home folder of a JDK that can run Elasticsearch. Searches `ES_JAVA_HOME`, `JAVA_HOME`, the PATH, and then
 * the usual folders.
 * @throws {SetupError} if there is none.
 */
export async function findJdk(env: NodeJS.ProcessEnv, runAs: Identity | undefined): Promise<string> {
  for (const home of new Set(candidates(env))) {
    if (await isUsableJdk(home, runAs)) return home;
  }
  throw new SetupError(
    `no JDK of version ${MIN_VERSION} or newer (with the module ${NEEDED_MODULE}) was found: install one or set JAVA_HOME`,
  );
}

function candidates(env: NodeJS.ProcessEnv): string[] {
  const named = [env['ES_JAVA_HOME'], env['JAVA_HOME']].filter((home): home is string => Boolean(home));
  const onPath = (env['PATH'] ?? '').split(delimiter).flatMap((folder) => {
    try {
      return [dirname(dirname(realpathSync(join(folder, 'java'))))];
    } catch {
      return [];
    }
  });
  const inHome = ['.sdkman/candidates/java', '.jdks'].map((folder) => join(homedir(), folder));
  const usual = ['/usr/lib/jvm', '/usr/java', '/opt', ...inHome].flatMap(children);
  const ofMac = children('/Library/Java/JavaVirtualMachines').map((folder) =>
    join(folder, 'Contents', 'Home'),
  );
  return [...named, ...onPath, ...usual, ...ofMac];
}

function children(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** Whether `home` has a JDK that is new enough, has `NEEDED_MODULE`, and can be run by the user `runAs`. */
async function isUsableJdk(home: string, runAs: Identity | undefined): Promise<boolean> {
  try {
    const modules = await run(join(home, 'bin', 'java'), ['--list-modules'], {
      runAs,
      cwd: '/',
      timeoutMs: 20_000,
    });
    const version = /^java\.base@(\d+)/m.exec(modules)?.[1];
    return Number(version) >= MIN_VERSION && modules.includes(`${NEEDED_MODULE}@`);
  } catch {
    return false;
  }
}
