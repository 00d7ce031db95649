import { expect } from 'chai';
import { codePoints } from '../../src/unicode.js';
import type { PackageEntry } from '../../src/search/package-document.js';
import { bundledPackages } from '../support/datasets.js';
import { Oracle } from '../../fixtures/search-oracle.js';
import { integer, pick, seededRandom } from '../../fixtures/random.js';
import { useService } from '../support/service.js';

/** Names as in other registries, and some that no registry should have. */
const WILD_NAMES = [
  '@babel/core', '@babel/core-js', '@Types/Node', 'Newtonsoft.Json', 'newtonsoft.json', 'NEWTONSOFT.JSON',
  'Zend_Db', 'zend_db', 'lib with spaces', '  padded  ', 'a*b', 'a?b', 'a%b_c', 'back\\slash', 'quo"te', "apo'strophe",
  'com,ma', 'new\nline', 'tab\tname', 'café', 'CAFÉ', 'cafe\u0301', 'straße', 'STRASSE', 'ẞharp', 'ΣΊΣΥΦΟΣ', 'σίσυφος',
  'İstanbul', 'istanbul', 'ISTANBUL', 'ıstanbul', '🚀rocket', 'rocket🚀', '🚀🚀', '👩‍👩‍👧-family', '日本語パッケージ', '日本', 'ﬁx', 'fix',
  '\u{10400}deseret', '\u{10428}deseret', '\uE000private', 'zz\uFFFDreplacement', 'nul\u0000byte', 'Ǆungla', 'ǅungla', 'ǆungla',
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

const QUERIES_FROM_NAMES = 450;
const QUERIES_OF_FRAGMENTS = 200;
const MAX_LENGTH = 100;

describe('GET /search against a brute-force oracle, over 1 shard', () => compare(1, bundledPackages()));

// With a quarter of the names, queries still match more per shard than a response contains.
describe('GET /search against a brute-force oracle, over 3 shards', () =>
  compare(
    3,
    bundledPackages()
      .filter((_, i) => i % 4 === 0)
      .map((entry, i) => ({ ...entry, no: i + 1 })),
  ));

/** @param packages numbered from 1; the wild names are added to them. */
function compare(shards: number, packages: PackageEntry[]): void {
  const bundledNames = new Set(packages.map(({ name }) => name));
  packages.push(
    ...WILD_NAMES.filter((name) => !bundledNames.has(name)).map((name, i) => ({
      no: packages.length + 1 + i,
      name,
      version: 'latest',
      url: 'https://wild.example/',
    })),
  );
  const oracle = new Oracle(packages);
  const suite = useService(
    () => packages,
    () => ({ INDEX_SHARDS: String(shards) }),
  );

  async function expectSameAnswer(text: string, limit: number): Promise<void> {
    const q = text.trim();
    const all = oracle.search(q);
    const answer = await suite.service.get(`/search?q=${encodeURIComponent(text)}&limit=${limit}`);
    const why = `for ${JSON.stringify(text)} with limit ${limit}`;
    expect(answer.status, why).to.equal(200);
    expect(answer.body, why).to.deep.equal({
      query: q,
      count: Math.min(limit, all.length),
      results: all.slice(0, limit),
    });
    expect(answer.headers.get('X-Results-Truncated'), why).to.equal(all.length > limit ? 'true' : null);
  }

  function isQuery(text: string): boolean {
    const length = codePoints(text.trim()).length;
    return length >= 2 && length <= MAX_LENGTH;
  }

  it('finds the same for substrings of real names, of every length', async function () {
    this.timeout(120_000);
    const random = seededRandom(1);
    let asked = 0;
    while (asked < QUERIES_FROM_NAMES) {
      // Every other name is a wild one, because these are few and most likely to fail.
      const { name } =
        asked % 2 === 0 ? pick(random, packages) : pick(random, packages.slice(-WILD_NAMES.length));
      const characters = codePoints(name);
      const length = Math.min(integer(random, 2, characters.length), MAX_LENGTH);
      const from = integer(random, 0, characters.length - length);
      const part = characters.slice(from, from + length).join('');
      const text = pick(random, [part, part, part.toUpperCase(), part.toLowerCase(), ` ${part}\t`]);
      if (!isQuery(text)) continue;
      await expectSameAnswer(text, pick(random, [1, 10, 250, 500]));
      asked++;
    }
  });

  it('finds the same for special characters, alone and combined', async function () {
    this.timeout(120_000);
    const random = seededRandom(2);
    const alone = FRAGMENTS.filter(isQuery);
    for (const fragment of alone) await expectSameAnswer(fragment, 250);
    for (let asked = alone.length; asked < QUERIES_OF_FRAGMENTS;) {
      const text = Array.from({ length: integer(random, 1, 3) }, () =>
        pick(random, [...FRAGMENTS, 'li', 'b', 'a']),
      ).join('');
      if (!isQuery(text)) continue;
      await expectSameAnswer(text, 250);
      asked++;
    }
  });

  it('finds the same for the broadest queries, the shortest and the longest', async () => {
    for (const text of ['li', 'lib', 'de', '-d', 'er', 'dev', '-dev', 'python3-', 'a-', 'z8']) {
      await expectSameAnswer(text, 500);
      await expectSameAnswer(text, 1);
    }
    await expectSameAnswer('x'.repeat(100), 250);
    await expectSameAnswer('long-'.repeat(20), 250);
    await expectSameAnswer('🚀'.repeat(100), 250);
  });

  it('finds every wild name by itself, with rank 0', async () => {
    for (const name of WILD_NAMES.filter(isQuery)) {
      const answer = await suite.service.get(`/search?q=${encodeURIComponent(name)}&limit=500`);
      const exact = (answer.body.results as { name: string; rank: number }[]).filter(
        ({ rank }) => rank === 0,
      );
      if (name === name.trim()) expect(exact.map((entry) => entry.name)).to.include(name);
    }
  });

  it('pages through all packages by number, each exactly once', async function () {
    this.timeout(60_000);
    const seen: PackageEntry[] = [];
    for (let page = 1; ; page++) {
      const { body } = await suite.service.get(`/browse?page=${page}&limit=500`);
      expect(body.page).to.equal(page);
      if (body.results.length === 0) break;
      seen.push(...(body.results as PackageEntry[]));
    }
    expect(seen).to.deep.equal(packages);
  });
}
