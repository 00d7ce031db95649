// Runs the commands of commands.json: `npm test -- NAME` and `npm run bench -- NAME` run a command of a group, or the
// default without a name. Further arguments are passed on. `npm run help` lists all. Runs before anything is installed.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';

/**
 * `scripts`: what each script of package.json does. `groups`: the commands of a group by name, with what they need first: an install
 * (`install`) or also a build (`build`).
 */
const { scripts, groups } = JSON.parse(readFileSync(new URL('commands.json', import.meta.url), 'utf8'));

function help() {
  const print = (commands) => {
    for (const [command, about] of commands) console.log(`  ${command.padEnd(32)} ${about}`);
  };
  print(
    Object.entries(scripts).map(([name, about]) => [
      /^(start|test)$/.test(name) ? `npm ${name}` : `npm run ${name}`,
      about,
    ]),
  );
  for (const [group, commands] of Object.entries(groups)) {
    const command = group === 'test' ? 'npm test' : `npm run ${group}`;
    console.log();
    print(
      Object.entries(commands).map(([name, { about }]) => [
        name === 'default' ? command : `${command} -- ${name}`,
        about,
      ]),
    );
  }
}

/** Runs a command in place of this process, as far as Node can. */
function run(line, args) {
  const child = spawn('sh', ['-c', `exec ${line} "$@"`, 'sh', ...args], { stdio: 'inherit' });
  // A terminal sends Ctrl-C to both.
  process.on('SIGINT', () => undefined);
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (status, signal) => {
    process.exitCode = status ?? 128 + constants.signals[signal];
  });
}

function runIn(group, args) {
  const [name = ''] = args;
  const commands = groups[group];
  const isNamed = Object.hasOwn(commands, name);
  if (!isNamed && /^[a-z]/.test(name)) {
    console.error(`no ${group} is called ${name}: use one of ${Object.keys(commands).slice(1).join(', ')}`);
    process.exitCode = 2;
    return;
  }
  const { needs, run: line } = commands[isNamed ? name : 'default'];
  if (needs !== undefined) {
    const setup = ['scripts/setup.mjs', ...(needs === 'build' ? ['--build'] : [])];
    const { status } = spawnSync(process.execPath, setup, { stdio: 'inherit' });
    if (status !== 0) {
      process.exitCode = status ?? 1;
      return;
    }
  }
  run(line, isNamed ? args.slice(1) : args);
}

const [group, ...args] = process.argv.slice(2);
if (group === 'help') help();
else runIn(group, args);
