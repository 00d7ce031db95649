import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import packageJson from '../../../package.json' with { type: 'json' };
import commands from '../../../scripts/commands.json' with { type: 'json' };

const run = (...args: string[]) => promisify(execFile)(process.execPath, ['scripts/run.mjs', ...args]);

const ABOUT = /^[A-Za-z].{9,100}[^.]$/;

describe('Commands', () => {
  it('are few, and each is in the list of npm run help', async () => {
    const names = Object.keys(packageJson.scripts);
    expect(names).to.have.members(Object.keys(commands.scripts));
    expect(names).to.have.length.at.most(20);
    const { stdout } = await run('help');
    const lines = stdout.split('\n').map((line) => line.trim().split(/ {2,}/));
    const listed = lines.filter(([command]) => command !== '');
    for (const [command, about] of listed) expect(about, command).to.match(ABOUT);
    const groups = Object.values(commands.groups).flatMap((group) => Object.keys(group));
    expect(listed).to.have.length(names.length + groups.length);
  });

  it('install the packages that they need', () => {
    // The others need none, or install them in the script that they run.
    const others = ['test', 'bench', 'check', 'check:nightly', 'sbom', 'help'];
    for (const [name, line] of Object.entries(packageJson.scripts))
      if (!others.includes(name)) expect(line, name).to.match(/^node scripts\/setup\.mjs /);
  });

  it('have no hidden steps before or after them', () => {
    for (const name of Object.keys(packageJson.scripts)) expect(name).not.to.match(/^(pre|post)/);
  });

  it('name the groups if there is none of this name', async () => {
    const outcome = await run('test', 'unti').catch((error: unknown) => error);
    expect(outcome).to.include({ code: 2, stdout: '' });
    expect(outcome)
      .to.have.property('stderr')
      .that.includes('no test is called unti: use one of unit, faults,');
  });
});
