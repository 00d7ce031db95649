import { expect } from 'chai';
import { codePoints, trimWhiteSpace } from '../../src/util/unicode.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { packagesNamed } from '../support/datasets.js';
import { Oracle } from '../fixtures/search-oracle.js';
import { expectAsOracle } from '../support/expect-search.js';
import { useService, type SuiteService } from '../support/service.js';

const LONG_SCOPE = `@${'scope.'.repeat(40)}x/`;

/** Names that can be queries: 2 to 100 characters, without white space at either end. */
const NAMES = [
  '@scope/name', '@Scope/Name', '@SCOPE/NAME', '@scope/name.js', '@scope/name-js', '@other/name', 'scope/name', 'name',
  'NAME', 'UPPER-Case', 'upper-case', 'Newtonsoft.Json', 'newtonsoft.json', 'System.Text.Json', 'System.Text', 'Text.Json',
  'github.com/Masterminds/semver/v3', 'gopkg.in/yaml.v3', 'org.apache.commons:commons-lang3', 'ends/', 'ends//', '/starts',
  'two//slashes', 'ends.', '.hidden', '...', '....', '.-.', '%2e', '%2e%2e', '%2E/%2e%2E', '%2F', '100%', 'a?b#c', 'a&b=c;d', 'c++',
  'with space', 'with+plus', 'quo"te', "apo'strophe", 'back\\slash', '..\\..', '<b>', '[x]',
  '{name}', '{+name}', '$&', '~tilde', 'a|b^c`d', 'café', 'CAFÉ', 'cafe\u0301', 'straße', 'STRASSE', 'ΣΊΣΥΦΟΣ', 'İstanbul.Pkg',
  '日本語/パッケージ', '@日本/語.js', '🚀🚀', '\u{10400}.Deseret', '\u{10428}.deseret', '\uFFFD\uFFFD', 'x'.repeat(100), 'é'.repeat(100),
]; // prettier-ignore

/** Names of 512 bytes, with the most and the fewest possible characters. */
const LONGEST = [
  'n'.repeat(512),
  LONG_SCOPE + 'N'.repeat(512 - LONG_SCOPE.length),
  'ö'.repeat(256),
  `${'語'.repeat(170)}ab`,
  '🚀'.repeat(128),
];

/** Names that can be listed, but are not valid queries. */
const UNASKABLE = ['a', 'É', '語', '@', '/'];

const ALL = [...NAMES, ...LONGEST, ...UNASKABLE];

const MAX_LENGTH = 100;
/** Separators of the parts of a name. */
const SEPARATOR = /[/@.]/;

/** The start of every URL, which the encoded name follows. */
const BASE = 'https://registry.example/p/';
const readBack = (url: string) => decodeURIComponent(url.slice(BASE.length));

const PACKAGES = packagesNamed(ALL).map((entry) => ({
  ...entry,
  url: BASE + encodeURIComponent(entry.name),
}));

function itListsThem(suite: SuiteService): void {
  it('are listed unchanged with URLs that browsers do not change', async () => {
    const listed = (await suite.service.get('/browse?limit=500')).body.results as PackageEntry[];
    expect(listed.map(({ name }) => name)).to.deep.equal(ALL);
    for (const { name, url } of listed) {
      expect(new URL(url).href, JSON.stringify(name)).to.equal(url);
      expect(readBack(url)).to.equal(name);
    }
  });
}

// Other templates: test/unit/lists/formats/package-check.test.ts.
describe('Names of various registries, with a URL template,', () => {
  const suite = useService(
    () => PACKAGES.map((entry) => ({ ...entry, url: '' })),
    () => ({ PACKAGE_URL_TEMPLATE: `${BASE}{+name}` }),
  );
  itListsThem(suite);
});

describe('Names of various registries', function () {
  this.timeout(60_000);
  const suite = useService(() => PACKAGES);
  const oracle = new Oracle(PACKAGES);
  itListsThem(suite);

  const expectFound = (text: string) =>
    expectAsOracle(suite.service, 'search', { text, limit: 500 }, (q) => oracle.search(q));

  it('are found by themselves, with rank 0', async () => {
    for (const name of NAMES) {
      const exact = (await expectFound(name)).filter(({ rank }) => rank === 0);
      expect(exact.map((entry) => entry.name)).to.include(name);
    }
  });

  it('are found in another case', async () => {
    for (const name of NAMES) {
      for (const q of [name.toLowerCase(), name.toUpperCase()]) {
        if (codePoints(q).length <= MAX_LENGTH) await expectFound(q);
      }
    }
    const found = await expectFound('@sCoPe/nAmE');
    expect(found.slice(0, 3).map(({ name, rank }) => `${rank} ${name}`)).to.deep.equal([
      '0 @SCOPE/NAME',
      '0 @Scope/Name',
      '0 @scope/name',
    ]);
  });

  it('are found by parts that span a separator', async () => {
    let asked = 0;
    for (const name of NAMES) {
      const characters = codePoints(name);
      for (const [at, character] of characters.entries()) {
        if (!SEPARATOR.test(character)) continue;
        for (const [before, after] of [
          [1, 1],
          [0, 3],
          [3, 4],
        ] as const) {
          const part = characters.slice(Math.max(0, at - before), at + after + 1).join('');
          if (codePoints(trimWhiteSpace(part)).length < 2) continue;
          expect((await expectFound(part)).map((entry) => entry.name)).to.include(name);
          asked++;
        }
      }
    }
    expect(asked).to.be.greaterThan(100);
  });

  it('are found by their first and last hundred characters if they are longer', async () => {
    for (const name of LONGEST) {
      const characters = codePoints(name);
      for (const part of [characters.slice(0, MAX_LENGTH), characters.slice(-MAX_LENGTH)]) {
        expect((await expectFound(part.join(''))).map((entry) => entry.name)).to.include(name);
      }
    }
  });
});
