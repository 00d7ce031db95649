import { isAbsolute } from 'node:path';
import { expect } from 'chai';
import { describeFileError, findPaths } from '../../../src/dev/paths.js';

describe('findPaths', () => {
  it('follows XDG, which ignores paths that are relative or empty', () => {
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

describe('describeFileError', () => {
  it('describes only errors of files', () => {
    const error = (fields: object) => Object.assign(new Error('a message'), fields);
    const full = error({ code: 'ENOSPC', syscall: 'write' });
    expect(describeFileError(full)).to.contain('(a message)');
    for (const other of [
      error({}),
      error({ syscall: 'listen', code: 'EADDRINUSE' }),
      error({ syscall: 'spawn id', path: 'id' }),
    ])
      expect(describeFileError(other)).to.equal(undefined);
  });
});
