import { expect } from 'chai';
import { generatedPackages } from '../../fixtures/generated-dataset.js';
import { integer, pick, seededRandom } from '../../fixtures/random.js';
import { SimilarityOracle } from '../../fixtures/similarity-oracle.js';
import { codePoints } from '../../src/unicode.js';
import type { PackageEntry } from '../../src/search/package-document.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { useProxiedService } from '../support/proxied-service.js';
import { startService, useService } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** Names whose folds are empty, short, equal to others, or of characters of several bytes. */
const AWKWARD_NAMES = [
  '-', '--', '_', '.', '...', ' ', 'a', 'A', 'b', '-a-', 'ab', 'AB', 'a-b', 'ba', 'abc', 'acb', 'ab-c', 'A.B.C', 'abcd', 'abdc', 'bacd', 'abcde',
  'abced', 'abcdef', 'abcdfe', 'badcef', 'bcadef', 'abcdefg', 'ABC-DEF', 'abc_def', 'İstanbul', 'istanbul', 'ıstanbul', 'straße', 'strasse',
  'cafétaria', 'cafe\u0301taria', '🚀rocket', 'rocket', 'rokcet🚀', '🚀🚀', '🚀', '日本語パッケージ', '日本語パッケジー', '日本', 'ΣΊΣΥΦΟΣ', 'σίσυφος',
  '@scope/name', '@scope/nmae', '@scpoe/name', 'scope/name', 'c++', 'c+', 'c#', 'quo"te-name', 'back\\slash', 'star*name', 'star?name', 'nul\u0000byte',
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

describe('GET /similar against a brute-force oracle, over 1 shard', () => compare(1, 100_000, 2000));

describe('GET /similar against a brute-force oracle, over 3 shards', () => compare(3, 5000, 200));

/** Compares the look-alikes of existing and other names with those of the oracle. */
function compare(shards: number, count: number, queries: number): void {
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
    () => ({ INDEX_SHARDS: String(shards), CACHE_MAX_BYTES: '0' }),
  );

  async function expectSame(text: string, limit: number): Promise<number> {
    const name = text.trim();
    const { status, body, headers } = await suite.service.get(
      `/similar?name=${encodeURIComponent(text)}&limit=${limit}`,
    );
    const all = oracle.similar(name);
    const why = `for ${JSON.stringify(text)} with limit ${limit}`;
    expect(status, why).to.equal(200);
    const results = all.slice(0, limit);
    expect(body, why).to.deep.equal({ name, count: results.length, results });
    expect(headers.get('X-Results-Truncated'), why).to.equal(all.length > limit ? 'true' : null);
    return all.length;
  }

  it('finds the same names', async function () {
    this.timeout(300_000);
    const random = seededRandom(20_261_123);
    const awkward = packages.slice(-AWKWARD_NAMES.length);
    const questions: [text: string, limit: number][] = [];
    while (questions.length < queries) {
      const { name } = pick(random, questions.length % 4 === 0 ? awkward : packages);
      const text = mutated(random, name, integer(random, 0, 3));
      const { length } = codePoints(text.trim());
      if (length >= 1 && length <= 100) questions.push([text, pick(random, [1, 10, 50])]);
    }
    let found = 0;
    // Concurrent, so that Elasticsearch and the oracle work in parallel.
    const remaining = questions.values();
    const ask = async () => {
      for (const [text, limit] of remaining) {
        const count = await expectSame(text, limit);
        found += count;
      }
    };
    await Promise.all([ask(), ask(), ask()]);
    expect(found, 'look-alikes').to.be.greaterThan(queries / 2);
  });

  it('finds the same names for every awkward name', async () => {
    for (const name of AWKWARD_NAMES) {
      if (name.trim() !== '' && codePoints(name).length <= 100) await expectSame(name, 50);
    }
  });
}

describe('GET /similar', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['redis', 'redis-', 'Redis', 'reids', 'rediss', 'other']));

  it('returns look-alikes, nearest first, and never the name itself', async () => {
    const { body, headers } = await suite.service.get('/similar?name=%20redis%20');
    expect(body).to.deep.include({ name: 'redis', count: 4 });
    const named = (body.results as { name: string; distance: number }[]).map((one) => [
      one.name,
      one.distance,
    ]);
    expect(named).to.deep.equal([
      ['Redis', 0],
      ['redis-', 0],
      ['rediss', 1],
      ['reids', 1],
    ]);
    expect(headers.get('X-Results-Truncated')).to.be.null;
    expect(headers.get('X-Snapshot')).to.match(/^[0-9]{8}t[0-9]{6}z-[0-9a-f]{8}$/);
  });

  it('reports that there are more', async () => {
    const { body, headers } = await suite.service.get('/similar?name=redis&limit=3');
    expect(body.count).to.equal(3);
    expect(headers.get('X-Results-Truncated')).to.equal('true');
  });

  for (const [query, detail] of [
    ['', 'name is required'],
    ['?name=', 'name must have 1 to 100 characters'],
    ['?name=%20%09', 'name must have 1 to 100 characters'],
    [`?name=${'x'.repeat(101)}`, 'name must have 1 to 100 characters'],
    ['?name=%FF', 'name must be UTF-8, percent-encoded'],
    ['?name=a&name=b', 'name must be given once'],
    ['?name=a&limit=0', 'limit must be a whole number from 1 in plain decimal digits'],
    ['?name=a&snapshot=x', 'snapshot must be an id from the X-Snapshot header'],
  ] as const) {
    it(`rejects ${query.slice(0, 30) || 'a request without a name'}`, async () => {
      const answer = await suite.service.get(`/similar${query}`);
      expectProblem(answer, 400, 'invalid_parameter');
      expect(answer.body.detail).to.equal(detail);
    });
  }

  it('caps limit at the maximum', async () => {
    expect((await suite.service.get('/similar?name=redis&limit=51')).headers.get('ETag')).to.equal(
      (await suite.service.get('/similar?name=redis&limit=50')).headers.get('ETag'),
    );
  });
});

/** One runs and 32 wait. */
const AT_A_TIME = 33;

describe('A flood of /similar', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => packagesNamed(['redis', 'reids', 'other']));

  it('is rejected beyond a full queue, and does not affect searches', async () => {
    const hold = suite.proxy.hold('before', (_method, path) => path.includes('/_msearch'));
    const held = suite.service.get('/similar?name=first');
    await hold.arrived;
    const waiting = Array.from({ length: AT_A_TIME - 1 }, (_, i) => suite.service.get(`/similar?name=n${i}`));
    await waitFor(async () => {
      const answer = await suite.service.get(`/similar?name=refused${Math.random()}&limit=1`);
      return answer.status === 503 && answer.headers.get('Retry-After') === '1';
    }, 'a full queue');
    expect((await suite.service.get('/search?q=other')).body.count).to.equal(1);
    hold.release();
    for (const { status } of await Promise.all([held, ...waiting])) expect(status).to.be.oneOf([200, 503]);
  });
});

describe('A generation without the field of look-alikes', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['redis', 'reids', 'other']));

  it('is served except for /similar, until a refresh rebuilds it', async () => {
    const { elasticsearch, server, slug } = suite.service;
    const index = server.generations.current?.index ?? '';
    const found = await elasticsearch.indices.getMapping({ index });
    const _meta = { ...found[index]?.mappings._meta };
    delete _meta['mapping_version'];
    await elasticsearch.indices.putMapping({ index, _meta });
    const refreshing = await startService(
      { DATASET_URL: suite.dataset.url, REBUILD_INTERVAL_SECONDS: '2' },
      slug,
    );
    try {
      await waitFor(() => refreshing.server.generations.engine === 'present', 'the replica');
      const answer = await refreshing.get('/similar?name=redis');
      expectProblem(answer, 503, 'initializing');
      expect(Number(answer.headers.get('Retry-After'))).to.be.greaterThan(0);
      expect((await refreshing.get('/search?q=red')).body.count).to.equal(1);
      expect((await refreshing.get('/packages/reids')).status).to.equal(200);
      expect((await refreshing.get('/lookup?name=redis')).body.count).to.equal(1);
      await waitFor(
        async () => (await refreshing.get('/similar?name=redis')).status === 200,
        'a new build',
        30_000,
      );
      expect((await refreshing.get('/similar?name=redis')).body.count).to.equal(1);
      const { counts } = refreshing.server.rebuilds;
      await waitFor(() => counts.unchanged >= 1, 'a refresh that finds nothing to build', 10_000);
      expect(await suite.service.indices()).to.have.length(2);
    } finally {
      await refreshing.stop();
    }
  });
});

describe('Look-alikes after a rebuild', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['redis', 'reids']));

  it('are those of the requested snapshot', async () => {
    const before = (await suite.service.get('/stats')).headers.get('X-Snapshot') ?? '';
    await suite.dataset.write(toCsv(packagesNamed(['redis', 'redi5'])));
    await suite.service.rebuild();
    const names = async (snapshot: string) =>
      ((await suite.service.get(`/similar?name=redis${snapshot}`)).body.results as PackageEntry[]).map(
        ({ name }) => name,
      );
    expect(await names('')).to.deep.equal(['redi5']);
    expect(await names(`&snapshot=${before}`)).to.deep.equal(['reids']);
  });
});
