import { expect } from 'chai';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { Oracle, type RankedEntry } from '../fixtures/search-oracle.js';
import { SimilarityOracle } from '../fixtures/similarity-oracle.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { codePoints } from '../../src/util/unicode.js';
import { UNCACHED } from '../support/background-reader.js';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { expectInvalid, expectProblem } from '../support/expect-problem.js';
import { atOnce } from '../support/at-once.js';
import { expectAsOracle } from '../support/expect-search.js';
import { cursorOf, linksOf, walk } from '../support/follow-next.js';
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
const SIMILARITY = new SimilarityOracle(PACKAGES);

const LOOK_ALIKES = 100;

const walkSearch = (service: Service, q: string, limit: number, between?: (pages: number) => Promise<void>) =>
  walk<RankedEntry>(service, `/search?q=${encodeURIComponent(q)}&limit=${limit}&sort=weight`, between);

describe('sort=weight against a brute-force oracle', function () {
  this.timeout(120_000);
  const suite = useService(
    () => PACKAGES,
    () => UNCACHED,
  );

  it('sorts the look-alikes at one distance by weight, then by name', async () => {
    const random = seededRandom(1);
    await atOnce(LOOK_ALIKES, () => {
      const characters = codePoints(pick(random, PACKAGES).name).slice(0, 60);
      if (random() < 0.5) characters.splice(integer(random, 0, characters.length - 1), 1);
      const page = { text: characters.join('').trim() || 'lib', limit: 50, params: '&sort=weight' };
      return expectAsOracle(suite.service, 'similar', page, (name) => SIMILARITY.similar(name, true));
    });
  });

  it('keeps the order by next through a flip to other weights', async () => {
    const all = new Oracle(PACKAGES).search('lib', true);
    const walked = await walkSearch(suite.service, 'lib', 50, async (pages) => {
      if (pages === 2) await suite.publish(weighted(PLAIN, 2));
    });
    expect(walked).to.deep.equal(all);
    const { body } = await suite.service.get('/changes');
    expect(body, 'changes of a snapshot in which weights differ').to.include({ count: 0 });
    expect(await walkSearch(suite.service, 'lib', 99)).to.deep.equal(
      new Oracle(weighted(PLAIN, 2)).search('lib', true),
    );
  });
});

describe('Weights', function () {
  this.timeout(60_000);
  const plain = packagesNamed(['lib-a', 'lib-b', 'lib-c', 'lib', 'Lib']);
  const suite = useService(() => plain);
  const weighing = (...weights: number[]) => plain.map((entry, i) => ({ ...entry, weight: weights[i] ?? 0 }));

  it('are absent from a dataset without the column, which is in name order by either', async () => {
    const { body } = await suite.service.get('/stats');
    expect(body).not.to.have.property('has_weights');
    for (const path of ['/search?q=lib', '/similar?name=lib-x']) {
      const { body: byName } = await suite.service.get(path);
      expect((await suite.service.get(`${path}&sort=weight`)).body).to.deep.equal(byName);
    }
    const walked = await walkSearch(suite.service, 'lib', 1);
    expect(walked.map(({ name }) => name)).to.deep.equal(['Lib', 'lib', 'lib-a', 'lib-b', 'lib-c']);
    expect(walked[0]).not.to.have.property('weight');
  });

  it('are a member of every entry', async () => {
    await suite.publish(weighing(1, 2 ** 53 - 1, 5, 7));
    expect((await suite.service.get('/stats')).body).to.include({ has_weights: true });
    expect((await suite.service.get('/packages/lib-b')).body).to.deep.equal(weighing(1, 2 ** 53 - 1)[1]);
    expect((await suite.service.get('/browse')).body.results).to.deep.equal(weighing(1, 2 ** 53 - 1, 5, 7));
    const { body } = await suite.service.get('/lookup?name=Lib');
    expect(body.results[0].package.weight).to.equal(0);
  });

  it('are not in /changes', async () => {
    await suite.publish(weighing(1, 2, 3, 4, 5));
    await suite.publish(
      weighing(10, 20, 30, 40, 50).map((entry) => (entry.no === 2 ? { ...entry, version: '2.0.0' } : entry)),
    );
    const { body } = await suite.service.get('/changes');
    const [changed] = packagesNamed(['lib-a', 'lib-b']).slice(1);
    const updated = { change: 'updated', ...changed, version: '2.0.0', previous_version: changed?.version };
    expect(body.results).to.deep.equal([updated]);
  });

  it('that differ, appear or disappear are no changes', async () => {
    await suite.publish(weighing(1, 2, 3));
    const withoutNumbers = (...weights: number[]) =>
      toCsv(weighing(...weights)).replaceAll(/^(package_no|\d+),/gm, '');
    for (const packages of [weighing(2), plain, weighing(12, 3), withoutNumbers(5, 6), withoutNumbers(7)]) {
      await suite.publish(packages);
      expect((await suite.service.get('/changes')).body).to.include({ count: 0 });
    }
  });

  it('reject other orders and their cursors', async () => {
    await expectInvalid(suite.service, '/search?q=lib&sort=size', '/similar?name=lib&sort=size');
    for (const [made, used] of [
      ['weight', 'name'],
      ['name', 'weight'],
    ] as const) {
      const answer = await suite.service.get(`/search?q=lib&limit=1&sort=${made}`);
      const after = cursorOf(answer);
      expect(linksOf(answer)['next']?.includes('sort=weight')).to.equal(made === 'weight');
      const other = await suite.service.get(`/search?q=lib&limit=1&sort=${used}&after=${after}`);
      expect(expectProblem(other, 400, 'invalid_parameter')).to.contain('after');
    }
  });
});
