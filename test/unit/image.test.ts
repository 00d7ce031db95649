import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { run } from '../../dev/run.js';
import { newFolder } from '../support/run-folder.js';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

describe('A clone', () => {
  it('has the line ends of Unix, whatever Git is configured to convert', async () => {
    const folder = newFolder();
    const git = (...args: string[]) => run('git', ['-C', folder, ...args]);
    const files = [
      '.gitattributes',
      'Dockerfile',
      'deploy/health-check.sh',
      'deploy/haproxy.cfg',
      'scripts/test.sh',
    ];
    await git('init', '--quiet');
    for (const file of files) cpSync(new URL(file, ROOT), join(folder, file));
    await git('add', '.');
    for (const options of [['core.autocrlf=true'], ['core.autocrlf=false', 'core.eol=crlf']]) {
      for (const file of files) rmSync(join(folder, file));
      await git(...options.flatMap((option) => ['-c', option]), 'checkout', '--quiet', '.');
      for (const file of files)
        expect(readFileSync(join(folder, file), 'utf8'), `${file}, ${options.join(' ')}`).to.equal(
          read(file),
        );
    }
  });
});
