import { expect } from 'chai';
import { Oracle } from '../../fixtures/search-oracle.js';
import type { PackageEntry } from '../../src/search/package-document.js';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { followNext, linksOf } from '../support/follow-next.js';
import { startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const CASE_VARIANTS = [
  'li-b', 'LI-b', 'Li-B', 'lI-b', 'li-B', 'LIB', 'lib', 'Lib', 'lIb', 'a-LIB', 'A-lib', 'a-lib', 'A-LIB', 'LİB', 'lİb', 'lıb', 'LİBİ', 'libi',
  'straße-lib', 'STRASSE-lib', '日本-lib', '🚀-LIB', '🚀-lib', '\u{10400}lib', '\u{10428}LIB', '\uE000lib', 'lib\u{10FFFF}', `lib${'x'.repeat(509)}`, '"lib', '-LIB-',
]; // prettier-ignore

/** Follows `next` from a first page to the last. @param between is called after each page with its number. */
async function walk(
  service: Service,
  path: string,
  between: (pages: number) => Promise<void> = () => Promise.resolve(),
) {
  const answers = await followNext(service, path, between);
  return {
    entries: answers.flatMap(({ body }) => body.results as (PackageEntry & { rank?: number })[]),
    snapshots: new Set(answers.map(({ headers }) => headers.get('X-Snapshot'))),
    pages: answers.length,
  };
}

describe('Following next', function () {
  this.timeout(120_000);
  const packages = [
    ...packagesNamed(CASE_VARIANTS),
    ...bundledPackages()
      .filter(({ name }) => !CASE_VARIANTS.includes(name))
      .slice(0, 20_000),
  ].map((entry, i) => ({ ...entry, no: i + 1 }));

  for (const shards of [1, 3]) {
    describe(`over ${shards} shards`, () => {
      const suite = useService(
        () => packages,
        () => ({ INDEX_SHARDS: String(shards), CACHE_MAX_BYTES: '0' }),
      );
      const oracle = new Oracle(packages);

      it('reaches every match of a search once, in order, with any limit', async () => {
        for (const [q, limit] of [
          ['li', 500],
          ['li', 499],
          ['Lib', 1000],
          ['lib', 37],
          ['li-b', 1],
          ['lib', 1],
          ['-dev', 100],
          ['a-lib', 2],
          ['lİb', 1],
          ['lib\u{10FFFF}', 1],
          ['x'.repeat(60), 1],
        ] as const) {
          const all = oracle.search(q);
          if (limit === 1 && all.length > 300) continue;
          const { entries, snapshots } = await walk(suite.service, `/search?q=${q}&limit=${limit}`);
          expect(entries, `${q} by ${limit}`).to.deep.equal(all);
          expect(snapshots.size).to.equal(1);
        }
      });

      it('reaches the end of each tier at every limit', async () => {
        const all = oracle.search('a-lib');
        for (let limit = 1; limit <= all.length + 1; limit++) {
          const { entries, pages } = await walk(suite.service, `/search?q=a-lib&limit=${limit}`);
          expect(entries, `by ${limit}`).to.deep.equal(all);
          expect(pages).to.equal(Math.ceil(all.length / limit));
        }
      });

      it('lists every package once, in order', async () => {
        for (const limit of [500, 433]) {
          const { entries } = await walk(suite.service, `/browse?limit=${limit}`);
          expect(entries).to.deep.equal(packages);
        }
      });
    });
  }
});

describe('Links of /browse', () => {
  const suite = useService(() => packagesNamed(['a', 'b', 'c', 'd', 'e']));
  const links = async (query: string) => {
    const answer = await suite.service.get(`/browse${query}`);
    const { snapshot } = suite.service.server.generations.current ?? {};
    return Object.fromEntries(
      Object.entries(linksOf(answer)).map(([relation, target]) => {
        expect(target).to.contain(`&snapshot=${snapshot}`);
        return [relation, target.replace(`&snapshot=${snapshot}`, '')];
      }),
    );
  };

  it('lead to the first, the previous, the next and the last page, if they exist', async () => {
    const [first, last] = ['?page=1&limit=2', '?page=3&limit=2'];
    expect(await links('?limit=2')).to.deep.equal({ first, next: '?page=2&limit=2', last });
    expect(await links('?limit=2&page=2')).to.deep.equal({ first, prev: first, next: last, last });
    expect(await links('?limit=2&page=3')).to.deep.equal({ first, prev: '?page=2&limit=2', last });
    expect(await links('?limit=2&page=4')).to.deep.equal({ first, prev: last, last });
    expect(await links('?limit=2&page=9007199254740991')).to.deep.equal({ first, prev: last, last });
    expect(await links('?limit=900')).to.deep.equal({
      first: '?page=1&limit=500',
      last: '?page=1&limit=500',
    });
  });
});

describe('Snapshots', function () {
  this.timeout(120_000);
  const generation = (n: number) =>
    packagesNamed(Array.from({ length: 300 }, (_, i) => `lib-${n}-${String(i).padStart(3, '0')}`));
  const suite = useService(() => generation(1));

  async function publish(n: number): Promise<void> {
    await suite.dataset.write(toCsv(generation(n)));
    await suite.service.rebuild('&force=true');
  }

  it('can be walked through across a flip, and are gone after the second one', async () => {
    for (const path of ['/search?q=b-1&limit=7', '/browse?limit=50']) {
      await publish(1);
      const { entries, snapshots } = await walk(suite.service, path, async (pages) => {
        if (pages === 2) await publish(2);
      });
      expect(entries.map(({ name }) => name)).to.deep.equal(generation(1).map(({ name }) => name));
      expect(snapshots.size).to.equal(1);
      const { next = '' } = linksOf(await suite.service.get(path.replace('b-1', 'b-2')));
      await publish(3);
      const target = `${path.split('?')[0]}${next}`;
      expect((await suite.service.get(target)).status).to.equal(200);
      await publish(4);
      const detail = expectProblem(await suite.service.get(target), 410, 'snapshot_gone');
      expect(detail).to.contain('start again');
    }
  });

  it('are known to every replica right after a flip', async () => {
    const replicas: Service[] = [suite.service];
    for (let i = 0; i < 2; i++) {
      replicas.push(await startService({ DATASET_URL: suite.dataset.url }, suite.service.slug));
    }
    try {
      for (let n = 1; n <= 6; n++) {
        const before = suite.service.server.generations.current?.snapshot ?? '';
        await publish(n);
        const { snapshot = '' } = suite.service.server.generations.current ?? {};
        expect(snapshot).not.to.equal(before);
        const ask = (id: string) =>
          Promise.all(replicas.map((replica) => replica.get(`/packages/lib-${n}-000?snapshot=${id}`)));
        for (const answer of await ask(snapshot)) {
          expect(answer.status, answer.text).to.equal(200);
          expect(answer.headers.get('X-Snapshot')).to.equal(snapshot);
        }
        for (const answer of await ask(before)) expectProblem(answer, 404, 'unknown_package');
      }
    } finally {
      for (const replica of replicas.slice(1)) await replica.stop();
    }
  });

  it('are known to a replica that started after the flip', async () => {
    const before = suite.service.server.generations.current?.snapshot ?? '';
    await publish(7);
    const replica = await startService({ DATASET_URL: suite.dataset.url }, suite.service.slug);
    try {
      await waitFor(() => replica.server.generations.engine === 'present', 'the replica');
      const answer = await replica.get(`/browse?limit=1&snapshot=${before}`);
      expect(answer.headers.get('X-Snapshot')).to.equal(before);
      expect(answer.body.results).to.have.length(1);
    } finally {
      await replica.stop();
    }
  });

  it('that never existed get 410; looking for them is throttled', async () => {
    const began = performance.now();
    const paths = ['/browse?', '/search?q=lib&', '/packages/lib?', '/lookup?name=a&', '/similar?name=a&'];
    const ask = (i: number) =>
      suite.service.get(`${paths[i % paths.length]}snapshot=20200101t000000z-0000000${i % 10}`);
    for (const answer of await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i)))) {
      expectProblem(answer, 410, 'snapshot_gone');
    }
    expectProblem(await ask(1), 410, 'snapshot_gone');
    // The second look waits until 200 ms after the first.
    expect(performance.now() - began).to.be.greaterThan(150);
  });

  it('and cursors are rejected if they are malformed, or belong to another query', async () => {
    const { next = '' } = linksOf(await suite.service.get('/search?q=lib&limit=5'));
    const after = new URLSearchParams(next).get('after') ?? '';
    const { snapshot } = suite.service.server.generations.current ?? {};
    for (const query of [
      'q=lib&snapshot=',
      'q=lib&snapshot=x',
      `q=lib&snapshot=${snapshot?.toUpperCase()}`,
      `q=lib&snapshot=${snapshot}&snapshot=${snapshot}`,
      'q=lib&after=',
      'q=lib&after=x',
      `q=lib&after=${after}=`,
      `q=lib&after=${after.slice(0, 9)}`,
      `q=lib&after=%20${after}`,
      `q=LIB&after=${after}`,
      `q=li&after=${after}`,
      `q=lib&after=${'A'.repeat(10_000)}`,
    ]) {
      expectProblem(await suite.service.get(`/search?${query}`), 400, 'invalid_parameter');
    }
    const all = await suite.service.get('/search?q=lib&limit=10');
    // With another limit and without the snapshot, the results still continue.
    const rest = await suite.service.get(`/search?q=lib&limit=3&after=${after}`);
    expect(rest.body.results).to.deep.equal((all.body.results as object[]).slice(5, 8));
  });
});
