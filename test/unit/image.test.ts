import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { run } from '../../dev/run.js';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

describe('Dockerfile', () => {
  const [build = '', last = ''] = read('Dockerfile')
    .split(/^FROM .*$/m)
    .slice(1);

  it('makes everything readable for the user of the image, whatever the umask of the clone', () => {
    expect(build.trim().split('\n').at(-1)).to.equal('RUN chmod -R a+rX .');
    const copies = [...last.matchAll(/^(?:COPY|ADD) (.*)$/gm)].map(([, what]) => what);
    expect(copies).to.be.an('array').that.is.not.empty;
    for (const copy of copies) expect(copy).to.match(/^--from=build /);
  });

  it('has a user whom Kubernetes can tell from root', () => {
    const [, user] = /^USER (.*)$/m.exec(last) ?? [];
    expect(user).to.match(/^[1-9]\d*:[1-9]\d*$/);
  });
});

describe('A clone', () => {
  it('has the line ends of Unix, whatever Git is configured to convert', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'package-registry-search-clone-'));
    const git = (...args: string[]) => run('git', ['-C', folder, ...args]);
    const files = [
      '.gitattributes',
      'Dockerfile',
      'deploy/health-check.sh',
      'deploy/haproxy.cfg',
      'scripts/test.sh',
    ];
    try {
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
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
