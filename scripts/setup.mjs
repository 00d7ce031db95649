// Prepares a clone: installs the dependencies if the lock file has changed, and compiles with --build if a source is
// newer than `dist`. With --built it only fails if one is.
// Plain JavaScript, because it runs before anything is installed. Leaves standard output to the next command.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const stampFile = `${root}node_modules/.installed-from`;

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Node ${process.versions.node} is too old: install 20.19 or newer.`);
  process.exit(1);
}

/** Files that every `npm run build` writes: tsc leaves those alone that have not changed. */
const BUILT = ['dist/rebuild/worker.cjs', 'dist/web/index.html'];

if (process.argv.includes('--built')) {
  const newer = newerThanBuild();
  if (newer !== undefined) console.error(`${newer} is newer than dist: run \`npm run build\` first`);
  process.exit(newer === undefined ? 0 : 1);
}

const lock = createHash('sha256')
  .update(readFileSync(`${root}package-lock.json`))
  .digest('hex');
const installed = existsSync(stampFile) && readFileSync(stampFile, 'utf8') === lock;
if (!installed) {
  console.error('Installing dependencies …');
  // No dependency needs its install script.
  npm('ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error');
  writeFileSync(stampFile, lock);
}
if (process.argv.includes('--build') && (!installed || newerThanBuild() !== undefined)) {
  npm('run', '--silent', 'build');
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
