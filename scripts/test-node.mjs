// Runs tests on another version of Node: `npm test -- node 24`, or `npm test -- node 24 unit --bail`. After `--`, any command.
// That version comes from the npm package `node`, which npm fetches once into its own cache.
import { execFileSync, spawnSync } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [version, ...args] = process.argv.slice(2);
const [command, ...rest] = args[0] === '--' ? args.slice(1) : ['npm', 'test', '--', ...args];

if (!/^\d+(\.\d+){0,2}$/.test(version ?? '')) {
  console.error('usage: npm test -- node VERSION [GROUP [ARGUMENT…]], such as 20.19, 22 or 26');
  process.exit(2);
}

const { path, running } = obtain(version);
console.log(`Node ${running}, ${path}: ${[command, ...rest].join(' ')}`);

// This version comes first on the PATH, so that it also runs programs that the tests start as `node` or by a shebang.
const { status, signal } = spawnSync(command, rest, {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PATH: `${dirname(path)}${delimiter}${process.env.PATH}` },
});
if (signal !== null) console.error(`${command} was ended by ${signal}`);
process.exit(status ?? 1);

/** Finds the newest Node of a version: its path and its exact version. */
function obtain(wanted) {
  const tell = 'console.log(JSON.stringify({ path: process.execPath, running: process.versions.node }))';
  const command = ['exec', '--yes', `--package=node@${wanted}`, '--', 'node', '--eval', tell];
  let found;
  try {
    found = JSON.parse(execFileSync('npm', command, { cwd: root, encoding: 'utf8' }));
  } catch {
    console.error(`Node ${wanted} could not be installed from the npm package \`node\`: see npm's output.`);
    process.exit(1);
  }
  // If npm may not run install scripts, the package is installed without its executable.
  if (`${found.running}.`.startsWith(`${wanted}.`)) return found;
  console.error(`The npm package \`node@${wanted}\` has no executable: Node ${found.running} ran instead.`);
  process.exit(1);
}
