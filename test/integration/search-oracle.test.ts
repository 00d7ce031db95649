import { expect } from 'chai';
import { MATCHES, type Match } from '../../src/search/name-filter.js';
import { NAME_RULES, type NameRule } from '../../src/util/name-rule.js';
import { codePoints, trimWhiteSpace } from '../../src/util/unicode.js';
import { AWKWARD_NAMES } from '../fixtures/awkward-names.js';
import { FORMS, packagesBy, respell } from '../fixtures/name-forms.js';
import { registryNames } from '../fixtures/package-names.js';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { Oracle, wordsOf, type RankedEntry } from '../fixtures/search-oracle.js';
import { atOnce } from '../support/at-once.js';
import { packagesNamed } from '../support/datasets.js';
import { expectInvalid } from '../support/expect-problem.js';
import { expectAsOracle } from '../support/expect-search.js';
import { walk } from '../support/follow-next.js';
import { RULE_SEARCHES } from '../support/long-runs.js';
import { useService, type Service } from '../support/service.js';

const FRAGMENTS = [
  '-dev', '+', '++', '.', '..', '@b', '@', '/', '%', '%%', '_', '__', '*', '**', '?', '\\', '\\\\', '"', '""', "'", '🚀', '🚀🚀', '👩', 'é',
  'É', 'e\u0301', 'ß', 'ẞ', 'σ', 'Σ', 'ς', 'İ', 'i̇s', 'ﬁ', '日本', '本語', '\u{10400}', '\u{10428}', '\uE000p', '\u0000', 'l\u0000b', '<s', '${',
  '{"', 'no such name', 'zzzzzzzz', '&&', '||', '!', '(a)', '[a', '~', '^', ':', 'a OR b', 'lib*', '*lib', 'lib?', 'li%', 'aaa', 'abab',
  'to', 'top', 'top\u{10FFFF}', '\u{10FFFF}x', 'to\u{10FFFF}', 'K', 'Ꮳ', 'ꮳ', 'ǅ', '\n', 'new\nline', '\t', 'com,ma', 'li', 'b', 'a', 'long-',
]; // prettier-ignore

/** Matched by many names. */
const BROAD = ['li', 'lib', 'LIB', 'de', 'er', '-d', 'a-', 'core', 'lib li', 'li de', 'er core', 'er de li'];

/** Few weights, which many packages share. */
const WEIGHTS = [0, 0, 0, 0, 1, 2, 3, 1000, 2 ** 31, 2 ** 53 - 1];

const SPACES = [' ', ' ', ' ', '  ', '\t', '\u0085', '\u00A0', '\u2003 '];
const MAX_LENGTH = 100;
const MAX_PAGES = 40;
const SORTS = ['name', 'weight'] as const;

interface Search {
  text: string;
  match: Match;
}

/** A snapshot by a rule, and what brute force finds in it. */
class Comparison {
  readonly packages;
  readonly #oracle;
  readonly #random = seededRandom(11);

  constructor(
    private readonly rule: NameRule,
    isWeighted: boolean,
  ) {
    const random = seededRandom(isWeighted ? 1 : 2);
    const generated = registryNames();
    const others = Array.from({ length: 50 * RULE_SEARCHES }, () => respell(random, generated.next().value));
    this.packages = packagesBy(rule, [...AWKWARD_NAMES, ...others]).map((entry) =>
      isWeighted ? { ...entry, weight: pick(random, WEIGHTS) } : entry,
    );
    this.#oracle = new Oracle(this.packages, FORMS[rule]);
  }

  /** Every other name is awkward, because these are few and most likely to fail. */
  #characters(): string[] {
    const name =
      this.#random() < 0.5 ? pick(this.#random, AWKWARD_NAMES) : pick(this.#random, this.packages).name;
    return codePoints(respell(this.#random, name)).slice(0, MAX_LENGTH);
  }

  /** Rarely one character, which the service rejects. */
  #part(characters: readonly string[], max: number): string {
    const min = this.#random() < 0.02 ? 1 : Math.min(characters.length, 2);
    const length = integer(this.#random, min, Math.min(characters.length, max));
    const from = integer(this.#random, 0, characters.length - length);
    return characters.slice(from, from + length).join('');
  }

  /** One to eight words: a whole name in pieces, parts of one name in any order, or parts of several names. */
  #words(): string {
    const characters = this.#characters();
    const kind = this.#random();
    const count = integer(this.#random, 1, 8);
    const size = Math.max(2, Math.ceil(characters.length / count));
    const words = Array.from({ length: count }, (_, i) => {
      if (kind < 0.3) return characters.slice(i * size, (i + 1) * size).join('');
      return this.#part(kind < 0.8 ? characters : this.#characters(), 5);
    });
    return words.reduce((text, word) => text + pick(this.#random, SPACES) + word);
  }

  /** A random search, half of the time for words. The service may have to reject it. */
  random(): Search {
    const match = this.#random() < 0.5 ? 'words' : pick(this.#random, MATCHES);
    const text = [
      () => (match === 'words' ? this.#words() : this.#part(this.#characters(), MAX_LENGTH)),
      () => this.#part(this.#characters(), 4),
      () => this.#characters().join(''),
      () => Array.from({ length: integer(this.#random, 1, 3) }, () => pick(this.#random, FRAGMENTS)).join(''),
    ][Math.floor(this.#random() ** 2 * 4)]?.() as string;
    return { text: pick(this.#random, [text, text, ` ${text}\t`]), match };
  }

  isValid({ text, match }: Search): boolean {
    const q = trimWhiteSpace(text);
    const words = match === 'words' ? wordsOf(q) : [q];
    const isLong = (word: string) => codePoints(FORMS[this.rule](word)).length >= 2;
    return codePoints(q).length <= MAX_LENGTH && words.length <= 8 && words.every(isLong);
  }

  /** Expects the same first page in both orders, then in one order the same walk. */
  async check(service: Service, search: Search, snapshot = ''): Promise<void> {
    const { text, match } = search;
    if (!this.isValid(search)) return expectInvalid(service, pathOf(search, snapshot));
    const limit = pick(this.#random, [1, 7, 250, 500]);
    const params = pathOf({ text: '', match }, snapshot) + pick(this.#random, ['', '&total=true']);
    for (const sort of SORTS) {
      const page = { text, limit, params: `${params.replace('/search?q=', '')}&sort=${sort}` };
      await expectAsOracle(service, 'search', page, (q) => this.#oracle.search(q, sort === 'weight', match));
    }
    await this.walk(service, search, snapshot);
  }

  /** Expects the same results one by one, or by seven. @param between runs after each page. */
  async walk(service: Service, search: Search, snapshot = '', between?: () => Promise<void>): Promise<void> {
    const sort = pick(this.#random, SORTS);
    const all = this.#oracle.search(trimWhiteSpace(search.text), sort === 'weight', search.match);
    const limit = Math.max(pick(this.#random, [1, 7]), Math.ceil(all.length / MAX_PAGES));
    const path = `${pathOf(search, snapshot)}&sort=${sort}&limit=${limit}`;
    const found = await walk<RankedEntry>(service, path, between);
    expect(found, `${this.rule}: ${path}`).to.deep.equal(all);
  }
}

function pathOf({ text, match }: Search, snapshot: string): string {
  const matching = match === 'contains' ? '' : `&match=${match}`;
  return `/search?q=${encodeURIComponent(text)}${matching}${snapshot}`;
}

describe('GET /search', function () {
  this.timeout(60_000 + RULE_SEARCHES * 1000);
  const suite = useService(() => packagesNamed(['first']));
  let before: { comparison: Comparison; id: string } | undefined;

  for (const [rule, isWeighted] of NAME_RULES.flatMap((rule) => [
    [rule, false] as const,
    [rule, true] as const,
  ])) {
    it(`agrees with brute force by the rule ${rule} ${isWeighted ? 'with' : 'without'} weights`, async () => {
      const { service } = suite;
      const comparison = new Comparison(rule, isWeighted);
      let published: Promise<string> | undefined;
      const publish = () => (published ??= suite.publish(comparison.packages, { NAME_RULE: rule }));
      const flip = () => publish().then(() => undefined);
      // Walks that begin before the flip end after it.
      const crossing = BROAD.map((text) =>
        before?.comparison.walk(service, { text, match: 'words' }, '', flip),
      );
      await Promise.all(crossing.filter((walked) => walked !== undefined));
      const id = await publish();
      await atOnce(RULE_SEARCHES, () => comparison.check(service, comparison.random()));
      for (const text of BROAD) await comparison.check(service, { text, match: 'words' });
      const { comparison: previous = comparison, id: pinned = id } = before ?? {};
      await atOnce(5, () => previous.check(service, previous.random(), `&snapshot=${pinned}`));
      before = { comparison, id };
    });
  }
});
