import { expect } from 'chai';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { Oracle, type RankedEntry } from '../fixtures/search-oracle.js';
import { SimilarityOracle } from '../fixtures/similarity-oracle.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { codePoints } from '../../src/util/unicode.js';
import { UNCACHED } from '../support/background-reader.js';
import { bundledPackages, packagesNamed } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { followNext, linksOf } from '../support/follow-next.js';
import { useService, type Service } from '../support/service.js';

/** Equal in lower case, so that several names have rank 0 and differ by weight. */
const CASE_VARIANTS = ['lib', 'LIB', 'Lib', 'lIb', 'LIb', 'a-lib', 'A-LIB', 'LİB', 'lib\u{10FFFF}', '"lib', 'redis', 'REDIS']; // prettier-ignore

const WEIGHTS = [1, 2, 3, 1000, 2 ** 31, 2 ** 53 - 1];

/** Half of them weigh 0, and the others share few weights. */
function weighted(packages: readonly PackageEntry[], seed: number): PackageEntry[] {
  const random = seededRandom(seed);
  return packages.map((entry) => ({ ...entry, weight: random() < 0.5 ? 0 : pick(random, WEIGHTS) }));
}

const PLAIN = [
  ...packagesNamed(CASE_VARIANTS),
  ...bundledPackages().filter(({ name }, i) => i % 16 === 0 && !CASE_VARIANTS.includes(name)),
].map((entry, i) => ({ ...entry, no: i + 1 }));
const PACKAGES = weighted(PLAIN, 1);
const ORACLE = new Oracle(PACKAGES);
const SIMILARITY = new SimilarityOracle(PACKAGES);

/** Requests of each suite, and how many of them are sent at a time. */
const SEARCHES = 500;
const LOOK_ALIKES = 100;
const BATCH = 20;

const BROAD = ['li', 'lib', 'LIB', 'de', 'er', '-dev', 'python3-', 'redis'];

/** A part of a random name, of 2 to 100 characters. */
function randomPart(random: () => number): string {
  const characters = codePoints(pick(random, PACKAGES).name);
  const length = Math.min(integer(random, 2, Math.max(2, characters.length)), 100);
  const from = integer(random, 0, Math.max(0, characters.length - length));
  return characters
    .slice(from, from + length)
    .join('')
    .trim();
}

/** Checks all items, some at a time. */
async function inBatches<T>(items: readonly T[], check: (item: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < items.length; i += BATCH) await Promise.all(items.slice(i, i + BATCH).map(check));
}

async function expectSameSearch(service: Service, q: string, limit: number): Promise<void> {
  const all = ORACLE.search(q, true);
  const answer = await service.get(`/search?q=${encodeURIComponent(q)}&limit=${limit}&sort=weight`);
  const results = all.slice(0, limit);
  expect(answer.body, `${q} by ${limit}`).to.deep.equal({ query: q, count: results.length, results });
  expect(linksOf(answer)['next']?.includes('sort=weight')).to.equal(all.length > limit ? true : undefined);
}

async function expectSameSimilar(service: Service, name: string): Promise<void> {
  const all = SIMILARITY.similar(name, true);
  const { body } = await service.get(`/similar?name=${encodeURIComponent(name)}&limit=50&sort=weight`);
  const results = all.slice(0, 50);
  expect(body, name).to.deep.equal({ name, count: results.length, results });
}

async function walk(service: Service, q: string, limit: number, between?: (pages: number) => Promise<void>) {
  const path = `/search?q=${encodeURIComponent(q)}&limit=${limit}&sort=weight`;
  const answers = await followNext(service, path, between);
  return answers.flatMap(({ body }) => body.results as RankedEntry[]);
}

describe('sort=weight against a brute-force oracle', function () {
  this.timeout(120_000);
  const suite = useService(
    () => PACKAGES,
    () => UNCACHED,
  );

  it('sorts the entries of one rank by weight, then by name', async () => {
    const random = seededRandom(1);
    const searches = BROAD.flatMap((q) => [1, 20, 500].map((limit) => ({ q, limit })));
    while (searches.length < SEARCHES) {
      const q = randomPart(random);
      if (codePoints(q).length >= 2) searches.push({ q, limit: pick(random, [1, 10, 20, 250, 500]) });
    }
    await inBatches(searches, ({ q, limit }) => expectSameSearch(suite.service, q, limit));
  });

  it('sorts the look-alikes at one distance by weight, then by name', async () => {
    const random = seededRandom(1);
    const names: string[] = [];
    while (names.length < LOOK_ALIKES) {
      const characters = codePoints(pick(random, PACKAGES).name).slice(0, 60);
      if (names.length % 2 === 0) characters.splice(integer(random, 0, characters.length - 1), 1);
      const name = characters.join('').trim();
      if (name !== '') names.push(name);
    }
    await inBatches(names, (name) => expectSameSimilar(suite.service, name));
  });

  it('keeps the order by next, whatever the limit', async () => {
    for (const [q, limit] of [
      ['lib', 1],
      ['redis', 1],
      ['LIB', 7],
      ['li', 499],
      ['python3-', 41],
    ] as const) {
      const all = ORACLE.search(q, true);
      const found = await walk(suite.service, q, Math.max(limit, Math.ceil(all.length / 30)));
      expect(found, `${q} by ${limit}`).to.deep.equal(all);
    }
  });

  it('keeps the order by next through a flip to other weights', async () => {
    const all = ORACLE.search('lib', true);
    const walked = await walk(suite.service, 'lib', 50, async (pages) => {
      if (pages === 2) await suite.publish(weighted(PLAIN, 2));
    });
    expect(walked).to.deep.equal(all);
    const { body } = await suite.service.get('/changes');
    expect(body, 'changes of a snapshot in which weights differ').to.include({ count: 0 });
    expect(await walk(suite.service, 'lib', 99)).to.deep.equal(
      new Oracle(weighted(PLAIN, 2)).search('lib', true),
    );
  });
});

describe('Weights', function () {
  this.timeout(60_000);
  const plain = packagesNamed(['lib-a', 'lib-b', 'lib-c', 'lib', 'Lib']);
  const suite = useService(() => plain);
  const namesOf = async (path: string) => {
    const { body } = await suite.service.get(path);
    return (body.results as PackageEntry[]).map(({ name }) => name);
  };
  const weighing = (...weights: number[]) => plain.map((entry, i) => ({ ...entry, weight: weights[i] ?? 0 }));

  it('are absent from a dataset without the column, which is in name order by either', async () => {
    const { body } = await suite.service.get('/stats');
    expect(body).not.to.have.property('has_weights');
    for (const path of ['/search?q=lib', '/similar?name=lib-x']) {
      const { body: byName } = await suite.service.get(path);
      expect((await suite.service.get(`${path}&sort=weight`)).body).to.deep.equal(byName);
    }
    const walked = await walk(suite.service, 'lib', 1);
    expect(walked.map(({ name }) => name)).to.deep.equal(['Lib', 'lib', 'lib-a', 'lib-b', 'lib-c']);
    expect(walked[0]).not.to.have.property('weight');
  });

  it('are a member of every entry that sorts them', async () => {
    await suite.publish(weighing(1, 2 ** 53 - 1, 5, 7));
    expect((await suite.service.get('/stats')).body).to.include({ has_weights: true });
    expect(await namesOf('/search?q=lib&sort=weight')).to.deep.equal([
      'lib',
      'Lib',
      'lib-b',
      'lib-c',
      'lib-a',
    ]);
    expect(await namesOf('/search?q=lib')).to.deep.equal(['Lib', 'lib', 'lib-a', 'lib-b', 'lib-c']);
    const similar = await namesOf('/similar?name=lib-x&sort=weight');
    expect(similar, 'at a distance of 1').to.deep.equal(['lib-b', 'lib', 'lib-c', 'lib-a', 'Lib']);
    expect((await suite.service.get('/packages/lib-b')).body).to.deep.equal(weighing(1, 2 ** 53 - 1)[1]);
    expect((await suite.service.get('/browse')).body.results).to.deep.equal(weighing(1, 2 ** 53 - 1, 5, 7));
    const { body } = await suite.service.get('/lookup?name=Lib');
    expect(body.results[0].package.weight).to.equal(0);
  });

  it('are not in /changes', async () => {
    await suite.publish(weighing(1, 2, 3, 4, 5));
    expect((await suite.service.get('/changes')).body).to.include({ count: 0 });
    await suite.publish(
      weighing(10, 20, 30, 40, 50).map((entry) => (entry.no === 2 ? { ...entry, version: '2.0.0' } : entry)),
    );
    const { body } = await suite.service.get('/changes');
    const [changed] = packagesNamed(['lib-a', 'lib-b']).slice(1);
    const updated = { change: 'updated', ...changed, version: '2.0.0', previous_version: changed?.version };
    expect(body.results).to.deep.equal([updated]);
  });

  it('that appear or disappear are no changes either', async () => {
    await suite.publish(weighing(1, 2, 3));
    for (const packages of [plain, weighing(12, 3)]) {
      await suite.publish(packages);
      expect((await suite.service.get('/changes')).body).to.include({ count: 0 });
    }
  });

  it('reject other orders and cursors of the other order', async () => {
    for (const path of ['/search?q=lib', '/similar?name=lib'])
      expectProblem(await suite.service.get(`${path}&sort=size`), 400, 'invalid_parameter');
    for (const [made, used] of [
      ['weight', 'name'],
      ['name', 'weight'],
    ] as const) {
      const answer = await suite.service.get(`/search?q=lib&limit=1&sort=${made}`);
      const after = new URLSearchParams(linksOf(answer)['next']?.slice(1)).get('after');
      const other = await suite.service.get(`/search?q=lib&limit=1&sort=${used}&after=${after}`);
      expect(expectProblem(other, 400, 'invalid_parameter')).to.contain('after');
    }
  });
});
