import { expect } from 'chai';
import { generatedPackages } from '../fixtures/generated-dataset.js';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { SimilarityOracle } from '../fixtures/similarity-oracle.js';
import { codePoints } from '../../src/util/unicode.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { packagesNamed } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { expectAsOracle, expectSearch, namesAt } from '../support/expect-search.js';
import { UNCACHED } from '../support/background-reader.js';
import { scrape } from '../support/metrics.js';
import { useProxiedService } from '../support/proxied-service.js';
import { useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** Names whose folds are empty, short, equal to others, or of characters of several bytes. */
const AWKWARD_NAMES = [
  '-', '--', '_', '.', '...', 'a', 'A', 'b', '-a-', 'ab', 'AB', 'a-b', 'ba', 'abc', 'acb', 'ab-c', 'A.B.C', 'abcd', 'abdc', 'bacd', 'abcde',
  'abced', 'abcdef', 'abcdfe', 'badcef', 'bcadef', 'abcdefg', 'ABC-DEF', 'abc_def', 'İstanbul', 'istanbul', 'ıstanbul', 'straße', 'strasse',
  'cafétaria', 'cafe\u0301taria', '🚀rocket', 'rocket', 'rokcet🚀', '🚀🚀', '🚀', '日本語パッケージ', '日本語パッケジー', '日本', 'ΣΊΣΥΦΟΣ', 'σίσυφος',
  '@scope/name', '@scope/nmae', '@scpoe/name', 'scope/name', 'c++', 'c+', 'c#', 'quo"te-name', 'back\\slash', 'star*name', 'star?name',
  '\u{10400}deseret', '\u{10428}desert', '~tilde~name', 'AUTO', 'auto:2', 'x'.repeat(512), 'x'.repeat(100), 'x'.repeat(99), 'x'.repeat(98), 'x'.repeat(97),
]; // prettier-ignore

const ALPHABET = [...codePoints('abcdefghijklmnopqrstuvwxyz0123456789-_. '), '🚀', 'é', '日'];

/** A name with this number of random edits, sometimes in upper case. */
function mutated(random: () => number, name: string, edits: number): string {
  const characters = codePoints(name);
  for (let edit = 0; edit < edits; edit++) {
    const at = integer(random, 0, characters.length);
    const character = pick(random, ALPHABET);
    const kind = integer(random, 0, 3);
    if (kind === 0) characters.splice(at, 0, character);
    else if (kind === 1) characters.splice(at, 1);
    else if (kind === 2) characters.splice(at, 1, character);
    else characters.splice(at, 2, ...characters.slice(at, at + 2).reverse());
  }
  const text = characters.join('');
  return random() < 0.2 ? text.toUpperCase() : text;
}

/**
 * Serves generated and awkward names for the calling suite.
 * @returns a function that compares the look-alikes of a text with those of the oracle, and returns their distances.
 */
function useComparison(count: number) {
  const packages: PackageEntry[] = [];
  let oracle: SimilarityOracle;
  before(async () => {
    const seen = new Set(AWKWARD_NAMES);
    for await (const entry of generatedPackages(count)) if (!seen.has(entry.name)) packages.push(entry);
    packages.push(...packagesNamed(AWKWARD_NAMES).map((entry) => ({ ...entry, no: count + entry.no })));
    oracle = new SimilarityOracle(packages);
  });
  const suite = useService(
    () => packages,
    () => UNCACHED,
  );

  async function expectSame(text: string, limit: number): Promise<number[]> {
    const find = (name: string) => oracle.similar(name);
    const results = await expectAsOracle(suite.service, 'similar', { text, limit }, find);
    return results.map(({ distance }) => distance);
  }

  /** Asks for existing and other names, concurrently, and expects look-alikes at each distance. */
  return async function expectSameFor(queries: number): Promise<void> {
    const random = seededRandom(20_261_123);
    const awkward = packages.slice(-AWKWARD_NAMES.length);
    const questions: [text: string, limit: number][] = [];
    while (questions.length < queries) {
      const { name } = pick(random, questions.length % 4 === 0 ? awkward : packages);
      questions.push([mutated(random, name, integer(random, 0, 3)), pick(random, [1, 10, 50])]);
    }
    questions.push(...AWKWARD_NAMES.map((name): [string, number] => [name, 50]));
    const valid = questions.filter(([text]) => text.trim() !== '' && codePoints(text.trim()).length <= 100);
    const counts = [0, 0, 0];
    const remaining = valid.values();
    const ask = async () => {
      for (const question of remaining) {
        for (const distance of await expectSame(...question)) counts[distance] = (counts[distance] ?? 0) + 1;
      }
    };
    await Promise.all([ask(), ask(), ask()]);
    for (const [distance, found] of counts.entries()) {
      expect(found, `look-alikes at distance ${distance}`).to.be.greaterThan(queries / 20);
    }
  };
}

describe('GET /similar against a brute-force oracle', function () {
  this.timeout(120_000);

  const expectSameFor = useComparison(8000);

  it('agrees with the oracle', () => expectSameFor(200));
});

/** While one search runs. */
const MAX_WAITING = 32;

describe('GET /similar', function () {
  this.timeout(60_000);
  const suite = useProxiedService(
    () => packagesNamed(['redis', 'redis-', 'Redis', 'reids', 'rediss', 'other']),
    { METRICS_PORT: '0', ...UNCACHED },
  );

  it('returns the nearest look-alikes first without the name itself', async () => {
    const { body, headers } = await suite.service.get('/similar?name=%20redis%20');
    expect(body).to.deep.include({ name: 'redis', count: 4 });
    const results = body.results as { name: string; distance: number }[];
    expect(results.map(({ name, distance }) => `${distance} ${name}`)).to.deep.equal([
      '0 Redis',
      '0 redis-',
      '1 rediss',
      '1 reids',
    ]);
    expect(headers.get('X-Results-Truncated')).to.be.null;
    expect(headers.get('X-Snapshot')).to.match(/^[0-9]{8}t[0-9]{6}z-[0-9a-f]{8}$/);
  });

  it('rejects exactly the requests beyond a full queue while searches succeed', async () => {
    const waiting = async () => (await scrape(suite.service.server.metricsUrl)).sum('similar_waiting');
    const ask = (count: number, what: string) =>
      Array.from({ length: count }, (_, i) => suite.service.get(`/similar?name=${what}${i}`));
    const hold = suite.proxy.hold('before', (_method, path) => path.includes('/_msearch'));
    const running = ask(1, 'running');
    await hold.arrived;
    const queued = ask(MAX_WAITING, 'queued');
    try {
      await waitFor(async () => (await waiting()) === MAX_WAITING, 'a full queue');
      for (const answer of await Promise.all(ask(8, 'refused'))) {
        expectProblem(answer, 503, 'search_unavailable');
        expect(answer.headers.get('Retry-After')).to.equal('1');
      }
      await expectSearch(suite.service, 'other', ['other']);
    } finally {
      hold.release();
    }
    for (const { status } of await Promise.all([...running, ...queued])) expect(status).to.equal(200);
  });

  it('returns look-alikes of the requested snapshot', async () => {
    const before = await suite.service.snapshot();
    await suite.publish(packagesNamed(['redis', 'redi5']));
    expect(await namesAt(suite.service, '/similar?name=redis')).to.deep.equal(['redi5']);
    const path = `/similar?name=redis&limit=1&snapshot=${before}`;
    expect(await namesAt(suite.service, path)).to.deep.equal(['Redis']);
  });
});
