import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { waitFor } from '../../support/wait-for.js';

/** Stands in for npm. It takes until there is a file `done`. */
const NPM = `#!/bin/sh
echo "$1" >> calls
until [ -e done ]; do sleep 0.05; done
mkdir -p node_modules
`;

/** Greater than any id of a process. */
const NO_PROCESS = String(2 ** 30);

describe('scripts/setup.mjs', () => {
  let clone: string;

  before(async () => {
    clone = await mkdtemp(join(tmpdir(), 'package-registry-search-setup-'));
    await mkdir(join(clone, 'scripts'));
    await copyFile('scripts/setup.mjs', join(clone, 'scripts/setup.mjs'));
    await writeFile(join(clone, 'package-lock.json'), '{}');
    await writeFile(join(clone, 'npm'), NPM, { mode: 0o755 });
  });
  after(() => rm(clone, { recursive: true }));

  function setUp() {
    const script = 'PATH="$PWD:$PATH" exec "$0" scripts/setup.mjs';
    const child = spawn('sh', ['-c', script, process.execPath], { cwd: clone });
    const result = {
      pid: child.pid,
      stderr: '',
      code: once(child, 'close').then(([code]) => code as number),
    };
    child.stderr.on('data', (chunk: Buffer) => (result.stderr += chunk.toString()));
    return result;
  }

  it('installs once if two commands start in a new clone, also after one was killed', async () => {
    await symlink(NO_PROCESS, join(clone, '.setup-lock'));
    const first = setUp();
    await waitFor(() => existsSync(join(clone, 'calls')), 'npm ci');
    const second = setUp();
    await waitFor(() => second.stderr.includes(`Waiting for process ${first.pid}`), 'the second to wait');
    await writeFile(join(clone, 'done'), '');
    expect(await Promise.all([first.code, second.code])).to.deep.equal([0, 0]);
    expect(await readFile(join(clone, 'calls'), 'utf8')).to.equal('ci\n');
    expect(second.stderr.split('\n')).to.have.lengthOf(2);
    expect(existsSync(join(clone, '.setup-lock'))).to.equal(false);
  });
});
