import { expect } from 'chai';
import { codePoints } from '../../src/util/unicode.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { bundledPackages, packagesNamed } from '../support/datasets.js';
import { Oracle } from '../fixtures/search-oracle.js';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { expectAsOracle } from '../support/expect-search.js';
import { useService } from '../support/service.js';

/** Names as in other registries, and some that no registry should have. */
const WILD_NAMES = [
  '@babel/core', '@babel/core-js', '@Types/Node', 'Newtonsoft.Json', 'newtonsoft.json', 'NEWTONSOFT.JSON',
  'Zend_Db', 'zend_db', 'lib with spaces', 'a*b', 'a?b', 'a%b_c', 'back\\slash', 'quo"te', "apo'strophe",
  'com,ma', 'café', 'CAFÉ', 'cafe\u0301', 'straße', 'STRASSE', 'ẞharp', 'ΣΊΣΥΦΟΣ', 'σίσυφος',
  'İstanbul', 'istanbul', 'ISTANBUL', 'ıstanbul', '🚀rocket', 'rocket🚀', '🚀🚀', '👩👩👧-family', '日本語パッケージ', '日本', 'ﬁx', 'fix',
  '\u{10400}deseret', '\u{10428}deseret', '\uE000private', 'zz\uFFFDreplacement', 'Ǆungla', 'ǅungla', 'ǆungla',
  '<script>alert(1)</script>', '${jndi}', '{"a":1}', 'aa', 'AA', 'aaa', 'aaaa', 'aaaaa', 'ababab', 'abababab', 'x'.repeat(512),
  `${'long-'.repeat(30)}name`,
  'top', 'top\u{10FFFF}', 'top\u{10FFFF}\u{10FFFF}\u{10FFFF}x', 'top\u{10FFFE}', `to${'\u{10FFFF}'.repeat(127)}`, 'toq',
  'ᏣᎳᎩ', 'ꮳꮃꭹ', 'K', 'kelvin', 'KELVIN', 'c++', 'g++-12', 'libstdc++6', 'with.dots.v1.2.3', '__proto__', 'constructor',
]; // prettier-ignore

const FRAGMENTS = [
  '-dev', '+', '++', '.', '..', '@b', '@', '/', '%', '%%', '_', '__', '*', '**', '?', '\\', '\\\\', '"', '""', "'", '🚀', '🚀🚀', '👩', 'é',
  'É', 'e\u0301', 'ß', 'ẞ', 'σ', 'Σ', 'ς', 'İ', 'i̇s', 'ﬁ', '日本', '本語', '\u{10400}', '\u{10428}', '\uE000p', '\u0000', 'l\u0000b', '<s', '${',
  '{"', 'no such name', 'zzzzzzzz', '&&', '||', '!', '(a)', '[a', '~', '^', ':', 'a OR b', 'lib*', '*lib', 'lib?', 'li%', 'aaa', 'abab',
  'to', 'top', 'top\u{10FFFF}', '\u{10FFFF}x', 'to\u{10FFFF}', 'K', 'Ꮳ', 'ꮳ', 'ǅ', '\n', 'new\nline', '\t', 'com,ma',
]; // prettier-ignore

const MAX_LENGTH = 100;

function isQuery(text: string): boolean {
  const { length } = codePoints(text.trim());
  return length >= 2 && length <= MAX_LENGTH;
}

/** Every `step`th bundled package and the wild names, numbered from 1. */
function packagesOf(step: number): PackageEntry[] {
  const wild = packagesNamed(WILD_NAMES);
  const names = new Set(WILD_NAMES);
  const bundled = bundledPackages().filter(({ name }, i) => i % step === 0 && !names.has(name));
  return [...bundled, ...wild].map((entry, i) => ({ ...entry, no: i + 1 }));
}

/** Serves these packages for the calling suite. @returns comparisons with the oracle. */
function useComparison(packages: PackageEntry[]) {
  const oracle = new Oracle(packages);
  const suite = useService(() => packages);

  const expectSame = (text: string, limit: number) =>
    expectAsOracle(suite.service, 'search', { text, limit }, (q) => oracle.search(q));

  async function expectSameForNames(queries: number): Promise<void> {
    const random = seededRandom(1);
    const wild = packages.slice(-WILD_NAMES.length);
    for (let asked = 0; asked < queries;) {
      // Every other name is a wild one, because these are few and most likely to fail.
      const { name } = pick(random, asked % 2 === 0 ? packages : wild);
      const characters = codePoints(name);
      const length = Math.min(integer(random, 2, characters.length), MAX_LENGTH);
      const from = integer(random, 0, characters.length - length);
      const part = characters.slice(from, from + length).join('');
      const text = pick(random, [part, part, part.toUpperCase(), part.toLowerCase(), ` ${part}\t`]);
      if (!isQuery(text)) continue;
      await expectSame(text, pick(random, [1, 10, 250, 500]));
      asked++;
    }
  }

  return { oracle, expectSame, expectSameForNames };
}

const BROAD = ['li', 'lib', 'de', '-d', 'er', 'dev', '-dev', 'python3-', 'a-', 'z8'];

// Listing all packages, page by page: walks.test.ts.
describe('GET /search against a brute-force oracle', function () {
  this.timeout(60_000);
  const { oracle, expectSame, expectSameForNames } = useComparison(packagesOf(16));

  it('agrees with the oracle for substrings of real names, of every length', () => expectSameForNames(300));

  it('agrees with the oracle for special characters, alone and combined', async () => {
    const random = seededRandom(2);
    for (const fragment of FRAGMENTS.filter(isQuery)) await expectSame(fragment, 250);
    for (let asked = 0; asked < 100;) {
      const fragment = () => pick(random, [...FRAGMENTS, 'li', 'b', 'a']);
      const text = Array.from({ length: integer(random, 1, 3) }, fragment).join('');
      if (!isQuery(text)) continue;
      await expectSame(text, 250);
      asked++;
    }
  });

  it('agrees with the oracle for the broadest, shortest and longest queries', async () => {
    expect(oracle.search('lib').length).to.be.greaterThan(1000);
    for (const text of BROAD) for (const limit of [500, 1]) await expectSame(text, limit);
    for (const text of ['x', 'long-', '🚀']) await expectSame(text.repeat(MAX_LENGTH / text.length), 250);
    await expectSame('🚀'.repeat(MAX_LENGTH), 250);
  });

  it('finds every wild name by itself, with rank 0', async () => {
    for (const name of WILD_NAMES.filter((wild) => isQuery(wild) && wild === wild.trim())) {
      const exact = oracle.search(name).filter(({ rank }) => rank === 0);
      expect(exact.map((entry) => entry.name)).to.include(name);
      await expectSame(name, 500);
    }
  });
});
