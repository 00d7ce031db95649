import { expect } from 'chai';
import fc from 'fast-check';
import { nameInPackageUrl } from '../../../src/util/package-url.js';

const NAMES: [url: string, type: string, name: string | undefined][] = [
  ['pkg:npm/lodash', 'npm', 'lodash'],
  ['pkg:npm/lodash@4.17.21', 'npm', 'lodash'],
  ['pkg:npm/%40types/node@22?a=@b/c#d/e@f', 'npm', '@types/node'],
  ['pkg:npm/@types/node@22', 'npm', '@types/node'],
  ['pkg:npm/%40types%2Fnode', 'npm', '@types/node'],
  ['PKG:///NPM//lodash/', 'npm', 'lodash'],
  ['pkg:composer/vendor/package@1', 'composer', 'vendor/package'],
  ['pkg:deb/debian/curl@7.50.3-1?arch=i386', 'deb', 'curl'],
  ['pkg:deb/libstdc%2B%2B6', 'deb', 'libstdc++6'],
  ['pkg:cran/A3@1.0.0', 'cran', 'A3'],
  ['pkg:pypi/a@b@1', 'pypi', 'a@b'],
  ['pkg:pypi/vendor/name', 'pypi', undefined],
  ['pkg:pypi/name', 'npm', undefined],
  ['pkg:npm/@1', 'npm', undefined],
  ['pkg:npm/%ff', 'npm', undefined],
  ['pkg:npm/?a', 'npm', undefined],
  ['pkg:npm', 'npm', undefined],
  ['npm/lodash', 'npm', undefined],
  ['', 'npm', undefined],
];

describe('The name in a package URL', () => {
  for (const [url, type, name] of NAMES) {
    it(`is ${name ?? 'none'} in "${url}" of ${type}`, () => {
      expect(nameInPackageUrl(url, type)).to.equal(name);
    });
  }

  it('is what was encoded, whatever follows it', () => {
    const part = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
    const property = fc.property(part, part, fc.array(part, { maxLength: 3 }), (name, scope, rest) => {
      const [version, qualifier, subpath] = rest.map(encodeURIComponent);
      const tail = `${version ? `@${version}` : ''}${qualifier ? `?a=${qualifier}` : ''}${subpath ? `#${subpath}` : ''}`;
      const url = `pkg:npm/${encodeURIComponent(scope)}/${encodeURIComponent(name)}${tail}`;
      expect(nameInPackageUrl(url, 'npm')).to.equal(`${scope}/${name}`);
    });
    fc.assert(property, { numRuns: 2000 });
  });
});
