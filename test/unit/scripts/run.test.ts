import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import packageJson from '../../../package.json' with { type: 'json' };
import commands from '../../../scripts/commands.json' with { type: 'json' };

const run = (...args: string[]) => promisify(execFile)(process.execPath, ['scripts/run.mjs', ...args]);

describe('Commands', () => {
  it('are all in the list of npm run help', async () => {
    const names = Object.keys(packageJson.scripts);
    expect(names).to.have.members(Object.keys(commands.scripts));
    const { stdout } = await run('help');
    const groups = Object.values(commands.groups).flatMap((group) => Object.keys(group));
    expect(stdout.match(/^ {2}npm .* {2}[A-Za-z]/gm)).to.have.length(names.length + groups.length);
  });

  it('install the packages that they need', () => {
    // The others need none, or install them in the script that they run.
    const others = ['test', 'bench', 'check', 'check:nightly', 'sbom', 'help'];
    for (const [name, line] of Object.entries(packageJson.scripts))
      if (!others.includes(name)) expect(line, name).to.match(/^node scripts\/setup\.mjs /);
  });

  it('name the groups if there is none of this name', async () => {
    const outcome = await run('test', 'unti').catch((error: unknown) => error);
    expect(outcome).to.have.property('code', 2);
    expect(outcome)
      .to.have.property('stderr')
      .that.includes('no test is called unti: use one of unit, faults,');
  });
});
