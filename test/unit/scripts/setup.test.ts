import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import {
  chmod,
  chown,
  copyFile,
  mkdir,
  mkdtemp,
  readFile,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { waitFor } from '../../support/wait-for.js';

/** Stands in for npm, and installs what the lock file names. It takes until there is a file `done`, and ends as that says. */
const NPM = `#!/bin/sh
echo "$@" >> calls
until [ -e done ]; do sleep 0.05; done
. ./done
[ "$1" != install ] || exec ./install
`;

/** Greater than any id of a process. */
const NO_PROCESS = String(2 ** 30);
const NOBODY = 65_534;

const { platform, arch } = process;
const ofPlatform = (os: string) => ({ dev: true, optional: true, os: [os], cpu: [arch] });
const LOCK: Record<string, object> = {
  koa: { version: '3.0.0', integrity: 'sha512-koa' },
  mocha: { version: '12.0.0', integrity: 'sha512-mocha', dev: true },
  '@esbuild/own': { version: '1.0.0', integrity: 'sha512-own', ...ofPlatform(platform) },
  '@esbuild/other': { version: '1.0.0', integrity: 'sha512-other', ...ofPlatform('other') },
  'needed-by-other': { version: '1.0.0', integrity: 'sha512-needed', dev: true, optional: true },
};
const FOR_SERVICE = ['koa'];
const FOR_ALL = ['koa', 'mocha', '@esbuild/own'];
const COMMAND = ['--build', '--omit=dev'];

function packages(names: string[], changed: object = {}): string {
  const entries = names.map((name) => [`node_modules/${name}`, { ...LOCK[name], ...changed }]);
  return JSON.stringify({ packages: { '': {}, ...Object.fromEntries(entries) } });
}

describe('scripts/setup.mjs', function () {
  this.timeout(30_000);
  const clones: string[] = [];
  after(() => Promise.all(clones.map((clone) => rm(clone, { recursive: true }))));

  /** A clone that is built. */
  async function newClone(): Promise<string> {
    const clone = await mkdtemp(join(tmpdir(), 'package-registry-search-setup-'));
    clones.push(clone);
    const files = [
      'src/main.ts',
      'package.json',
      'tsconfig.json',
      'dist/cli/rebuild.cjs',
      'dist/web/index.html',
    ];
    for (const folder of ['scripts', 'src', 'dev', 'dist/cli', 'dist/web'])
      await mkdir(join(clone, folder), { recursive: true });
    for (const file of files) await writeFile(join(clone, file), '{}');
    await copyFile('scripts/setup.mjs', join(clone, 'scripts/setup.mjs'));
    await writeFile(join(clone, 'package-lock.json'), packages(Object.keys(LOCK)));
    const folders = FOR_ALL.map((name) => `node_modules/${name}`);
    const install = [
      '#!/bin/sh',
      ...folders.map((folder) => `mkdir -p ${folder}; echo {} > ${folder}/package.json`),
      `echo '${packages(FOR_ALL)}' > node_modules/.package-lock.json`,
    ];
    await writeFile(join(clone, 'install'), install.join('\n'), { mode: 0o755 });
    await writeFile(join(clone, 'npm'), NPM, { mode: 0o755 });
    return clone;
  }

  async function installedClone(names: string[], changed?: object): Promise<string> {
    const clone = await newClone();
    for (const name of names) {
      await mkdir(join(clone, 'node_modules', name), { recursive: true });
      await writeFile(join(clone, 'node_modules', name, 'package.json'), '{}');
    }
    await mkdir(join(clone, 'node_modules'), { recursive: true });
    await writeFile(join(clone, 'node_modules/.package-lock.json'), packages(names, changed));
    return clone;
  }

  const finish = (clone: string, how = '') => writeFile(join(clone, 'done'), how);
  const calls = async (clone: string) =>
    existsSync(join(clone, 'calls'))
      ? (await readFile(join(clone, 'calls'), 'utf8')).trimEnd().split('\n')
      : [];

  function setUp(
    clone: string,
    args: string[] = [],
    { uid, env = [] }: { uid?: number; env?: string[] } = {},
  ) {
    const script = `PATH="$PWD:$PATH" exec env ${env.join(' ')} "$0" scripts/setup.mjs "$@"`;
    const child = spawn('sh', ['-c', script, process.execPath, ...args], {
      cwd: clone,
      ...(uid !== undefined && { uid }),
    });
    const result = {
      pid: child.pid,
      stderr: '',
      code: once(child, 'close').then(([code]) => code as number),
    };
    child.stderr.on('data', (chunk: Buffer) => (result.stderr += chunk.toString()));
    return result;
  }

  async function ended(...given: Parameters<typeof setUp>) {
    const child = setUp(...given);
    return { code: await child.code, stderr: child.stderr };
  }

  it('does not touch an installation that has the needed packages, however it was made', async () => {
    for (const [args, names] of [
      [COMMAND, FOR_SERVICE],
      [COMMAND, [...FOR_SERVICE, '@esbuild/other']],
      [COMMAND, FOR_ALL],
      [['--build'], FOR_ALL],
      [[], [...FOR_ALL, '@esbuild/other', 'needed-by-other']],
    ] as [string[], string[]][]) {
      const clone = await installedClone(names);
      const what = `${args.join(' ')} ${names.join(' ')}`;
      expect(await ended(clone, args), what).to.deep.equal({ code: 0, stderr: '' });
      expect(await calls(clone), what).to.deep.equal([]);
    }
  });

  it('completes one that does not, whatever the configuration of npm omits', async () => {
    const newer = async (clone: string) => {
      const later = new Date(Date.now() + 60_000);
      await utimes(join(clone, 'src/main.ts'), later, later);
    };
    for (const [what, args, names, change] of [
      ['no tools', [], FOR_SERVICE],
      ['no tools', ['--build'], FOR_SERVICE],
      ['no tools, but a source is newer', COMMAND, FOR_SERVICE, newer],
      ['tools for another platform', ['--build'], ['koa', 'mocha', '@esbuild/other']],
      ['another version', COMMAND, { version: '2.0.0' }],
      ['other content', COMMAND, { integrity: 'sha512-other' }],
      [
        'a folder deleted',
        COMMAND,
        FOR_ALL,
        (clone: string) => rm(join(clone, 'node_modules/koa'), { recursive: true }),
      ],
      [
        'not finished',
        COMMAND,
        FOR_ALL,
        (clone: string) => rm(join(clone, 'node_modules/.package-lock.json')),
      ],
      [
        'cut off',
        COMMAND,
        FOR_ALL,
        (clone: string) => writeFile(join(clone, 'node_modules/.package-lock.json'), '{'),
      ],
    ] as [string, string[], string[] | object, ((clone: string) => Promise<void>)?][]) {
      const clone = await (Array.isArray(names)
        ? installedClone(names as string[])
        : installedClone(FOR_ALL, names));
      await change?.(clone);
      await finish(clone);
      expect((await ended(clone, args, { env: ['NODE_ENV=production'] })).code, what).to.equal(0);
      const [install, build] = await calls(clone);
      expect(install, what).to.match(/^install .*--include=dev .*--no-save/);
      expect(build, what).to.equal(args.includes('--build') ? 'run --silent build' : undefined);
      expect(existsSync(join(clone, '.setup-lock')), what).to.equal(false);
    }
  });

  it('installs again after npm has failed', async () => {
    const clone = await newClone();
    await finish(clone, 'exit 1');
    expect((await ended(clone)).code).to.equal(1);
    await finish(clone);
    expect((await ended(clone)).code).to.equal(0);
    expect(await calls(clone)).to.have.lengthOf(2);
  });

  it('keeps installed packages if npm cannot reach its registry', async () => {
    const clone = await installedClone(['koa']);
    const manifest = {
      name: 'clone',
      version: '1.0.0',
      dependencies: { koa: '3.0.0' },
      devDependencies: { mocha: '12.0.0' },
    };
    await writeFile(join(clone, 'package.json'), JSON.stringify(manifest));
    const lock = {
      name: 'clone',
      version: '1.0.0',
      lockfileVersion: 3,
      packages: { '': manifest, 'node_modules/koa': LOCK['koa'], 'node_modules/mocha': LOCK['mocha'] },
    };
    await writeFile(join(clone, 'package-lock.json'), JSON.stringify(lock));
    await rm(join(clone, 'npm'));
    const env = [
      'npm_config_registry=http://127.0.0.1:1',
      'npm_config_fetch_retries=0',
      `npm_config_cache=${join(clone, 'cache')}`,
    ];
    expect(await setUp(clone, [], { env }).code).to.equal(1);
    expect(existsSync(join(clone, 'node_modules/koa/package.json'))).to.equal(true);
    await writeFile(join(clone, 'dist/cli/rebuild.cjs'), '');
    await writeFile(join(clone, 'dist/web/index.html'), '');
    expect(await ended(clone, COMMAND, { env })).to.deep.equal({ code: 0, stderr: '' });
  });

  it('installs once if two commands start in a new clone, also after one was killed', async () => {
    const clone = await newClone();
    await symlink(NO_PROCESS, join(clone, '.setup-lock'));
    const first = setUp(clone);
    await waitFor(() => existsSync(join(clone, 'calls')), 'npm install');
    const second = setUp(clone);
    await waitFor(() => second.stderr.includes(`Waiting for process ${first.pid}`), 'the second to wait');
    await finish(clone);
    expect(await Promise.all([first.code, second.code])).to.deep.equal([0, 0]);
    expect(await calls(clone)).to.have.lengthOf(1);
    expect(second.stderr.split('\n')).to.have.lengthOf(2);
    expect(existsSync(join(clone, '.setup-lock'))).to.equal(false);
  });

  it('waits for another command for as long as that runs, but not for a process that has its id', async () => {
    const [busy, ofOther, ofOtherUser, ofFile] = await Promise.all([
      newClone(),
      newClone(),
      newClone(),
      newClone(),
    ]);
    await symlink(String(process.pid), join(ofOther, '.setup-lock'));
    await symlink('1', join(ofOtherUser, '.setup-lock'));
    await writeFile(join(ofFile, '.setup-lock'), 'a file');
    await Promise.all([ofOther, ofOtherUser, ofFile].map((clone) => finish(clone)));
    const first = setUp(busy);
    await waitFor(() => existsSync(join(busy, 'calls')), 'npm install');
    const second = setUp(busy);
    await waitFor(() => second.stderr !== '', 'the second to wait');
    // Nobody else may run a Node that is in root's home.
    const isRoot = process.getuid?.() === 0 && !process.execPath.startsWith(homedir());
    if (isRoot) {
      await chmod(ofOtherUser, 0o755);
      await chown(ofOtherUser, NOBODY, NOBODY);
    }
    const left = [[ofOther], [ofOtherUser, [], isRoot ? { uid: NOBODY } : {}], [ofFile]] as Parameters<
      typeof setUp
    >[];
    for (const { code, stderr } of await Promise.all(left.map((given) => ended(...given))))
      expect({ code, lines: stderr.split('\n').length }, stderr).to.deep.equal({ code: 0, lines: 3 });
    expect(await calls(busy)).to.have.lengthOf(1);
    await finish(busy);
    expect(await Promise.all([first.code, second.code])).to.deep.equal([0, 0]);
    expect(await calls(busy)).to.have.lengthOf(1);
  });
});
