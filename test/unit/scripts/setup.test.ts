import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { waitFor } from '../../support/wait-for.js';
import { newFolder } from '../../support/run-folder.js';

/** Stands in for npm. It takes until there is a file `done`, and ends as that says. */
const NPM = `#!/bin/sh
echo "$@" >> calls
until [ -e done ]; do sleep 0.05; done
. ./done
`;

/** Greater than any id of a process. */
const NO_PROCESS = String(2 ** 30);

const { platform, arch } = process;
const ofPlatform = (os: string) => ({ dev: true, optional: true, os: [os], cpu: [arch] });
const LOCK: Record<string, object> = {
  koa: { version: '3.0.0', integrity: 'sha512-koa' },
  mocha: { version: '12.0.0', integrity: 'sha512-mocha', dev: true },
  '@esbuild/own': { version: '1.0.0', integrity: 'sha512-own', ...ofPlatform(platform) },
  '@esbuild/other': { version: '1.0.0', integrity: 'sha512-other', ...ofPlatform('other') },
};
const FOR_ALL = ['koa', 'mocha', '@esbuild/own'];
const COMMAND = ['--build', '--omit=dev'];

function packages(names: string[], changed: object = {}): string {
  const entries = names.map((name) => [`node_modules/${name}`, { ...LOCK[name], ...changed }]);
  return JSON.stringify({ packages: { '': {}, ...Object.fromEntries(entries) } });
}

describe('scripts/setup.mjs', function () {
  this.timeout(30_000);

  /** A clone that is built and has these packages. @param changed in the record of what is installed. */
  async function cloneWith(names: string[], changed?: object): Promise<string> {
    const clone = newFolder();
    const folders = names.map((name) => `node_modules/${name}/package.json`);
    const built = ['dist/cli/rebuild.cjs', 'dist/web/index.html'];
    for (const file of ['src/main.ts', 'dev/a', 'package.json', 'tsconfig.json', ...built, ...folders]) {
      await mkdir(dirname(join(clone, file)), { recursive: true });
      await writeFile(join(clone, file), '{}');
    }
    await mkdir(join(clone, 'scripts'));
    await copyFile('scripts/setup.mjs', join(clone, 'scripts/setup.mjs'));
    await writeFile(join(clone, 'package-lock.json'), packages(Object.keys(LOCK)));
    if (names.length > 0)
      await writeFile(join(clone, 'node_modules/.package-lock.json'), packages(names, changed));
    await writeFile(join(clone, 'npm'), NPM, { mode: 0o755 });
    return clone;
  }

  const finish = (clone: string, how = '') => writeFile(join(clone, 'done'), how);
  const calls = (clone: string) =>
    readFile(join(clone, 'calls'), 'utf8').then(
      (text) => text.trimEnd().split('\n'),
      () => [],
    );

  function setUp(clone: string, args: string[] = []) {
    const script = 'PATH="$PWD:$PATH" NODE_ENV=production exec "$0" scripts/setup.mjs "$@"';
    const child = spawn('sh', ['-c', script, process.execPath, ...args], { cwd: clone });
    const code = once(child, 'close').then(([status]) => status as number);
    const result = { pid: child.pid, stderr: '', code };
    child.stderr.on('data', (chunk: Buffer) => (result.stderr += chunk.toString()));
    return result;
  }

  for (const [args, names] of [
    [COMMAND, ['koa']],
    [COMMAND, FOR_ALL],
    [['--build'], FOR_ALL],
    [[], [...FOR_ALL, '@esbuild/other']],
  ] as [string[], string[]][])
    it(`does not touch an installation of ${names.join(', ')} for ${args.join(' ') || 'all'}`, async () => {
      const clone = await cloneWith(names);
      const { code } = setUp(clone, args);
      expect(await code).to.equal(0);
      expect(await calls(clone)).to.deep.equal([]);
    });

  for (const [what, args, names, changed] of [
    ['nothing', COMMAND, []],
    ['no tools', ['--build'], ['koa']],
    ['tools for another platform', ['--build'], ['koa', 'mocha', '@esbuild/other']],
    ['another version', COMMAND, FOR_ALL, { version: '2.0.0' }],
    ['other content', COMMAND, FOR_ALL, { integrity: 'sha512-other' }],
  ] as [string, string[], string[], object?][])
    it(`completes an installation with ${what}`, async () => {
      const clone = await cloneWith(names, changed);
      await finish(clone);
      expect(await setUp(clone, args).code).to.equal(0);
      const [install, build] = await calls(clone);
      expect(install).to.match(/^install .*--include=dev .*--no-save/);
      expect(build).to.equal('run --silent build');
      expect(existsSync(join(clone, '.setup-lock'))).to.equal(false);
    });

  it('fails with npm and installs again at the next command', async () => {
    const clone = await cloneWith([]);
    await finish(clone, 'exit 1');
    expect(await setUp(clone).code).to.equal(1);
    await finish(clone);
    expect(await setUp(clone).code).to.equal(0);
    expect(await calls(clone)).to.have.lengthOf(2);
  });

  it('prepares a clone for one command at a time', async () => {
    const clone = await cloneWith([]);
    const first = setUp(clone);
    await waitFor(() => existsSync(join(clone, 'calls')), 'npm install');
    const second = setUp(clone);
    await waitFor(() => second.stderr.includes(`Waiting for process ${first.pid}`), 'the second to wait');
    expect(await calls(clone)).to.have.lengthOf(1);
    await finish(clone);
    expect(await Promise.all([first.code, second.code])).to.deep.equal([0, 0]);
  });

  it('takes over the lock of a process that has ended', async () => {
    const clone = await cloneWith([]);
    await symlink(NO_PROCESS, join(clone, '.setup-lock'));
    await finish(clone);
    expect(await setUp(clone).code).to.equal(0);
    expect(await calls(clone)).to.have.lengthOf(1);
  });
});
