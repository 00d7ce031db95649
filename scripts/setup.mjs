// Prepares a clone: installs missing dependencies and, with --build, compiles if a source is newer than `dist`. With
// --omit=dev, development dependencies may be missing unless it compiles. With --built, it only fails if a source is
// newer. Plain JavaScript, because it runs before anything is installed. Prints nothing to standard output, which
// belongs to the next command.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  lutimes,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The lock: a link to the id of the process that installs or builds. The process renews the link. */
const lockFile = `${root}.setup-lock`;
/** Interval of renewals, and age of a lock that is left over, in milliseconds. */
const RENEW_MS = 1000;
const STALE_MS = 5000;

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Node ${process.versions.node} is too old: install 20.19 or newer.`);
  process.exit(1);
}

/** Files that every `npm run build` writes. */
const BUILT = ['dist/cli/rebuild.cjs', 'dist/web/index.html'];

if (process.argv.includes('--built')) {
  const newer = newerThanBuild();
  if (newer !== undefined) console.error(`${newer} is newer than dist: run \`npm run build\` first`);
  process.exit(newer === undefined ? 0 : 1);
}

const needsBuild = process.argv.includes('--build');
const isBuilt = () => !needsBuild || newerThanBuild() === undefined;
const isInstalled = () => hasInstalled(!process.argv.includes('--omit=dev') || !isBuilt());

if (!isInstalled() || !isBuilt()) {
  try {
    await lockClone();
    // Another command may have done it meanwhile.
    const fresh = !isInstalled();
    if (fresh) {
      console.error('Installing dependencies …');
      // Unlike `npm ci`, `npm install` keeps installed packages, even if it fails. No dependency needs its install
      // script.
      const included = ['--include=dev', '--include=optional', '--package-lock', '--no-save'];
      await npm('install', ...included, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error');
    }
    if (needsBuild && (fresh || !isBuilt())) await npm('run', '--silent', 'build');
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
  process.exit();
}

/**
 * Whether npm has installed the packages of the lock file for this platform, in the versions that it names.
 * @param all whether development dependencies are needed, too.
 */
function hasInstalled(all) {
  try {
    // npm writes this file at the end of an installation.
    const installed = packagesOf('node_modules/.package-lock.json');
    return Object.entries(packagesOf('package-lock.json'))
      .filter(([path, wanted]) => path !== '' && isNeeded(wanted, all))
      .every(
        ([path, { version, integrity }]) =>
          installed[path]?.version === version &&
          installed[path].integrity === integrity &&
          existsSync(`${root}${path}/package.json`),
      );
  } catch {
    // One of the files is missing or damaged. If npm cannot replace it, npm says which one.
    return false;
  }
}

function packagesOf(file) {
  return JSON.parse(readFileSync(root + file, 'utf8')).packages;
}

/** Optional packages are programs for one platform each, and their dependencies on other platforms. */
function isNeeded({ dev, optional, os, cpu, libc }, all) {
  if (!optional) return all || !dev;
  const { platform, arch } = process;
  return all && os?.includes(platform) && cpu?.includes(arch) && (libc?.includes(libcName()) ?? true);
}

function libcName() {
  process.report.excludeNetwork = true;
  return process.report.getReport().header.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
}

/**
 * Waits until no other command installs or builds in this clone: they would delete each other's files. A lock is left
 * over if its process has ended, or if it was not renewed: then another process has this id.
 */
async function lockClone() {
  for (let seen; ;) {
    try {
      // Created with its content in one step, unlike a file.
      symlinkSync(String(process.pid), lockFile);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const renewed = lstatSync(lockFile, { throwIfNoEntry: false })?.mtimeMs;
    if (renewed === undefined) continue;
    const owner = ownerOfLock();
    if (owner !== undefined && owner !== seen?.owner)
      console.error(`Waiting for process ${owner}, which prepares this clone (${lockFile}) …`);
    if (owner !== seen?.owner || renewed !== seen?.renewed) seen = { owner, renewed, at: performance.now() };
    if (owner !== undefined && performance.now() - seen.at < STALE_MS) await pause(200);
    else rmSync(lockFile, { force: true, recursive: true });
  }
  process.on('exit', () => rmSync(lockFile, { force: true }));
  // It may have been deleted by hand.
  setInterval(() => lutimes(lockFile, new Date(), new Date(), () => undefined), RENEW_MS);
}

/** @returns the id of the process in the lock; undefined if there is no such process. */
function ownerOfLock() {
  let owner;
  try {
    owner = readlinkSync(lockFile);
    process.kill(Number(owner), 0);
  } catch (error) {
    // Other errors: the process belongs to another user, or the lock is not a link or was just removed.
    if (error.code === 'ESRCH') return undefined;
  }
  return owner ?? 'unknown';
}

/** @returns a file or folder that the build reads and that is newer than its result, if there is one. */
function newerThanBuild() {
  const modifiedAt = (path) => statSync(root + path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const builtAt = Math.min(...BUILT.map(modifiedAt));
  const sources = ['src', 'dev'].flatMap((folder) =>
    readdirSync(root + folder, { recursive: true }).map((path) => `${folder}/${path}`),
  );
  return ['package.json', 'tsconfig.json', ...sources].find((path) => modifiedAt(path) > builtAt);
}

async function npm(...args) {
  const [code] = await once(spawn('npm', args, { cwd: root, stdio: ['inherit', 2, 'inherit'] }), 'exit');
  if (code !== 0) throw new Error(`\`npm ${args.join(' ')}\` failed; its messages are above`);
}
