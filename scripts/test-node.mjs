// Runs an npm script on another version of Node: `npm run test:node -- 24`, or `npm run test:node -- 24 test:unit --bail`.
// That version comes from the npm package `node`, which npm fetches once into its own cache.
import { execFileSync, spawnSync } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [version, script = 'test', ...args] = process.argv.slice(2);

if (!/^\d+(\.\d+){0,2}$/.test(version ?? '')) {
  console.error('usage: npm run test:node -- VERSION [SCRIPT [ARGUMENT…]], such as 20.19, 22 or 24');
  process.exit(2);
}

const { path, running } = obtain(version);
console.log(`Node ${running}, ${path}: npm run ${[script, ...args].join(' ')}`);

// What the tests start as `node`, by a shebang or by process.execPath, is the first one on the PATH, too.
const { status, signal } = spawnSync('npm', ['run', script, '--', ...args], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PATH: `${dirname(path)}${delimiter}${process.env.PATH}` },
});
if (signal !== null) console.error(`npm run ${script} was ended by ${signal}`);
process.exit(status ?? 1);

/** Where the newest Node of a version lies, and which one it is. */
function obtain(wanted) {
  const tell = 'console.log(JSON.stringify({ path: process.execPath, running: process.versions.node }))';
  const command = ['exec', '--yes', `--package=node@${wanted}`, '--', 'node', '--eval', tell];
  let found;
  try {
    found = JSON.parse(execFileSync('npm', command, { cwd: root, encoding: 'utf8' }));
  } catch {
    console.error(`Node ${wanted} cannot be had from the npm package \`node\`; npm's messages are above.`);
    process.exit(1);
  }
  // Where npm may not run install scripts, the package is there and its program is not.
  if (`${found.running}.`.startsWith(`${wanted}.`)) return found;
  console.error(`The npm package \`node@${wanted}\` brought no program: Node ${found.running} runs.`);
  process.exit(1);
}
