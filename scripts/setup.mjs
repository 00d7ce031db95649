// Prepares a clone: installs the dependencies if the lock file has changed, and compiles with --build if a source is
// newer than `dist`. With --built it only fails if one is.
// Plain JavaScript, because it runs before anything is installed. Leaves standard output to the next command.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const stampFile = `${root}node_modules/.installed-from`;
/** A link to the id of the process that installs or builds. */
const lockFile = `${root}.setup-lock`;

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Node ${process.versions.node} is too old: install 20.19 or newer.`);
  process.exit(1);
}

/** Files that every `npm run build` writes: tsc leaves those alone that have not changed. */
const BUILT = ['dist/cli/rebuild.cjs', 'dist/web/index.html'];

if (process.argv.includes('--built')) {
  const newer = newerThanBuild();
  if (newer !== undefined) console.error(`${newer} is newer than dist: run \`npm run build\` first`);
  process.exit(newer === undefined ? 0 : 1);
}

const wanted = createHash('sha256')
  .update(readFileSync(`${root}package-lock.json`))
  .digest('hex');
const isInstalled = () => existsSync(stampFile) && readFileSync(stampFile, 'utf8') === wanted;
const isBuilt = () => !process.argv.includes('--build') || newerThanBuild() === undefined;

if (!isInstalled() || !isBuilt()) {
  lockClone();
  process.on('exit', () => rmSync(lockFile, { force: true }));
  // Another command may have done it meanwhile.
  const fresh = !isInstalled();
  if (fresh) {
    console.error('Installing dependencies …');
    // No dependency needs its install script.
    npm('ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error');
    writeFileSync(stampFile, wanted);
  }
  if (process.argv.includes('--build') && (fresh || !isBuilt())) npm('run', '--silent', 'build');
}

/** Waits until no other command installs or builds in this clone: they would delete each other's files. */
function lockClone() {
  for (let owner; ;) {
    try {
      // Created with its content in one step, unlike a file.
      symlinkSync(String(process.pid), lockFile);
      return;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const next = ownerOfLock();
    if (next === undefined) continue;
    if (next !== owner)
      console.error(`Waiting for process ${next}, which prepares this clone (${lockFile}) …`);
    owner = next;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  }
}

/** @returns the id of the process that has the lock; undefined if it has ended, after removing what it left. */
function ownerOfLock() {
  try {
    const owner = Number(readlinkSync(lockFile));
    process.kill(owner, 0);
    return owner;
  } catch (error) {
    // ENOENT: it was released. ESRCH: there is no such process.
    if (!['ENOENT', 'ESRCH'].includes(error.code)) throw error;
    rmSync(lockFile, { force: true });
    return undefined;
  }
}

/** @returns a file or folder that the build reads and that is newer than its result, if there is one. */
function newerThanBuild() {
  const modifiedAt = (path) => statSync(root + path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const builtAt = Math.min(...BUILT.map(modifiedAt));
  const sources = readdirSync(`${root}src`, { recursive: true }).map((path) => `src/${path}`);
  return ['package.json', 'tsconfig.json', ...sources].find((path) => modifiedAt(path) > builtAt);
}

function npm(...args) {
  try {
    execFileSync('npm', args, { cwd: root, stdio: ['inherit', 2, 'inherit'] });
  } catch {
    console.error(`\`npm ${args.join(' ')}\` failed; its messages are above.`);
    process.exit(1);
  }
}
