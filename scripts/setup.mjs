// Prepares a clone: installs the dependencies if the lock file has changed, and compiles with --build.
// Plain JavaScript, because it runs before anything is installed. Leaves standard output to the next command.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const stampFile = `${root}node_modules/.installed-from`;

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Node ${process.versions.node} is too old: install 20.19 or newer.`);
  process.exit(1);
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
if (process.argv.includes('--build')) npm('run', '--silent', 'build');

function npm(...args) {
  try {
    execFileSync('npm', args, { cwd: root, stdio: ['inherit', 2, 'inherit'] });
  } catch {
    console.error(`\`npm ${args.join(' ')}\` failed; its messages are above.`);
    process.exit(1);
  }
}
