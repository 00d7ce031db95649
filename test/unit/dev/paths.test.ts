import { mkdir, stat, writeFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { expect } from 'chai';
import { writeBasicConfiguration } from '../../../dev/elasticsearch.js';
import { findPaths, makeReadableFolder } from '../../../dev/paths.js';
import { newFolder } from '../../support/run-folder.js';

describe('findPaths', () => {
  it('follows absolute paths of XDG', () => {
    const given = findPaths({ XDG_DATA_HOME: '/data', XDG_CACHE_HOME: '/cache' }, false);
    expect(given.data).to.match(/^\/data\/package-registry-search\/[a-f\d]{12}$/);
    expect(given.programs).to.equal('/cache/package-registry-search');
    for (const path of ['', 'data', './data', '~/data']) {
      const paths = findPaths({ XDG_DATA_HOME: path, XDG_CACHE_HOME: path }, false);
      expect(paths).to.deep.equal(findPaths({}, false));
      expect([paths.data, paths.programs].every(isAbsolute), path).to.equal(true);
    }
  });
});

describe('A file that another user must read', () => {
  it('is readable with any umask even if an earlier version made it unreadable', async () => {
    const folder = newFolder();
    const modeOf = async (path: string) => ((await stat(join(folder, path))).mode & 0o777).toString(8);
    for (const umask of [0o077, 0o027, 0o022]) {
      const usual = process.umask(umask);
      try {
        const names = ['earlier', `made-${umask}/programs`];
        await mkdir(join(folder, 'earlier/config'), { recursive: true, mode: 0o700 });
        await writeFile(join(folder, 'earlier/config/jvm.options'), '');
        for (const name of names) makeReadableFolder(join(folder, name));
        writeBasicConfiguration(join(folder, 'earlier'), join(folder, 'earlier'));
        for (const name of names) expect(await modeOf(name), name).to.equal('755');
        for (const name of ['log4j2.properties', 'jvm.options'])
          expect(await modeOf(`earlier/${name}`), name).to.equal('644');
      } finally {
        process.umask(usual);
      }
    }
  });
});
