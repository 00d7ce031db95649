import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROJECT_FOLDER } from '../src/util/project-folder.js';

/** The folders of the services' programs and data, and the user that runs them. */
export interface Paths {
  /** Programs, shared by all clones of this user. */
  programs: string;
  /** The data of this clone's services. */
  data: string;
  /** Elasticsearch does not run as root: if the caller is root, the services run as `nobody`. */
  runAs: Identity | undefined;
}

export interface Identity {
  uid: number;
  gid: number;
}

const NAME = 'package-registry-search';
const CLONE = fileURLToPath(PROJECT_FOLDER);

/**
 * Finds the folders and the user of the services. An ordinary user's folders follow the XDG rules, which ignore
 * relative paths. Root's folders are not in root's home folder, because `nobody` cannot read it.
 * @param env the environment, for `XDG_CACHE_HOME` and `XDG_DATA_HOME`.
 */
export function findPaths(env: NodeJS.ProcessEnv, isRoot = process.getuid?.() === 0): Paths {
  const clone = createHash('sha256').update(CLONE).digest('hex').slice(0, 12);
  if (isRoot) {
    return { programs: `/var/cache/${NAME}`, data: `/var/lib/${NAME}/${clone}`, runAs: nobody() };
  }
  const cache = absolute(env['XDG_CACHE_HOME']) ?? resolve(homedir(), '.cache');
  const data = absolute(env['XDG_DATA_HOME']) ?? resolve(homedir(), '.local', 'share');
  return { programs: join(cache, NAME), data: join(data, NAME, clone), runAs: undefined };
}

function absolute(path = ''): string | undefined {
  return isAbsolute(path) ? path : undefined;
}

/**
 * Describes in one line for the terminal why a file or folder of the services cannot be used, for example because it is
 * read-only. Returns undefined for errors that are not from the file system.
 */
export function describeFileError(error: unknown): string | undefined {
  const { code, syscall = '', path, message } = error as NodeJS.ErrnoException;
  // The error of a full disk has no path.
  if ((path === undefined && code !== 'ENOSPC') || syscall.startsWith('spawn')) return undefined;
  const others = process.getuid?.() === 0 ? '' : ', or set XDG_DATA_HOME and XDG_CACHE_HOME to other folders';
  return `the files of Elasticsearch and Redis cannot be written (${message}): correct that${others}`;
}

/** Creates a folder that the services may write to. */
export function makeFolder(path: string, owner: Identity | undefined): string {
  mkdirSync(path, { recursive: true });
  if (owner !== undefined) chownSync(path, owner.uid, owner.gid);
  return path;
}

/** Creates a folder that every user may read, whatever the umask. An earlier version may have created it unreadable. */
export function makeReadableFolder(path: string): void {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o755);
}

/** Writes a file that every user may read, whatever the umask. */
export function writeReadable(path: string, text: string): void {
  writeFileSync(path, text);
  chmodSync(path, 0o644);
}

function nobody(): Identity {
  const id = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}
