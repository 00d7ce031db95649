import { expect } from 'chai';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { UNCACHED } from '../support/background-reader.js';
import { bundledPackages, packagesNamed } from '../support/datasets.js';
import { expectInvalid, expectProblem } from '../support/expect-problem.js';
import { cursorOf, followNext, linksOf } from '../support/follow-next.js';
import { useService, type Service } from '../support/service.js';
import { useReplicaStarter } from '../support/replica-starter.js';

/** Follows `next` through pages of one snapshot. @param between is called after each page with its number. */
async function walk(service: Service, path: string, between?: (pages: number) => Promise<void>) {
  const answers = await followNext(service, path, between);
  const snapshots = new Set(answers.map(({ headers }) => headers.get('X-Snapshot')));
  expect(snapshots.size, 'snapshots').to.equal(1);
  return {
    entries: answers.flatMap(({ body }) => body.results as (PackageEntry & { rank?: number })[]),
    pages: answers.length,
  };
}

const PACKAGES = bundledPackages()
  .filter((_, i) => i % 30 === 0)
  .map((entry, i) => ({ ...entry, no: i + 1 }));

describe('Following next', function () {
  this.timeout(60_000);
  const suite = useService(
    () => PACKAGES,
    () => UNCACHED,
  );

  it('lists every package once, in order', async () => {
    expect((await walk(suite.service, '/browse?limit=433')).entries).to.deep.equal(PACKAGES);
  });

  it('of /browse leads to the first, the previous, the next and the last page, if they exist', async () => {
    const snapshot = await suite.service.snapshot();
    const links = async (page: number) => {
      const found = Object.entries(linksOf(await suite.service.get(`/browse?limit=900&page=${page}`)));
      return Object.fromEntries(
        found.map(([relation, target]) => {
          expect(target).to.match(new RegExp(`^\\?page=\\d+&limit=500&snapshot=${snapshot}$`));
          return [relation, Number(/\d+/.exec(target))];
        }),
      );
    };
    const last = Math.ceil(PACKAGES.length / 500);
    expect(last).to.equal(5);
    expect(await links(1)).to.deep.equal({ first: 1, next: 2, last });
    expect(await links(2)).to.deep.equal({ first: 1, prev: 1, next: 3, last });
    expect(await links(last)).to.deep.equal({ first: 1, prev: 4, last });
    expect(await links(last + 1)).to.deep.equal({ first: 1, prev: last, last });
    expect(await links(Number.MAX_SAFE_INTEGER)).to.deep.equal({ first: 1, prev: last, last });
  });
});

describe('match', () => {
  const suite = useService(() => PACKAGES);

  it('is kept by next links, whose cursors are of one match only', async () => {
    const first = (match: string) => suite.service.get(`/search?q=li&limit=1&${match}`);
    const [contains, prefix, words] = [
      await first(''),
      await first('match=prefix'),
      await first('match=words'),
    ];
    expect(linksOf(prefix)['next']).to.match(/^\?q=li&limit=1&match=prefix&snapshot=[\w-]+&after=[\w-]+$/);
    expect(linksOf(contains)['next']).to.match(/^\?q=li&limit=1&snapshot=[\w-]+&after=[\w-]+$/);
    for (const [after, match, status] of [
      [cursorOf(prefix), 'prefix', 200],
      [cursorOf(prefix), 'contains', 400],
      [cursorOf(prefix), 'exact', 400],
      [cursorOf(contains), 'contains', 200],
      [cursorOf(contains), 'prefix', 400],
      [cursorOf(words), 'words', 200],
      [cursorOf(words), 'contains', 400],
    ] as const) {
      const answer = await suite.service.get(`/search?q=li&match=${match}&after=${after}`);
      expect(answer.status, `${after} ${match}`).to.equal(status);
    }
    const invalid = ['', 'Prefix', 'suffix', 'prefix&match=prefix'];
    await expectInvalid(suite.service, ...invalid.map((match) => `/search?q=li&match=${match}`));
  });

  it('of words takes one to eight words of two characters', async () => {
    const detailOf = async (path: string) =>
      expectProblem(await suite.service.get(path), 400, 'invalid_parameter');
    const words = (count: number) => Array.from({ length: count }, () => 'li').join('%20');
    for (const path of ['/search', '/changes', '/changes.atom']) {
      expect((await suite.service.get(`${path}?q=${words(8)}&match=words`)).status).to.equal(200);
      expect(await detailOf(`${path}?q=${words(9)}&match=words`)).to.equal('q must have at most 8 words');
      expect(await detailOf(`${path}?q=li%20b&match=words`)).to.equal(
        'q must have at least 2 characters in each word where names are compared (exact)',
      );
    }
  });
});

describe('Snapshots', function () {
  this.timeout(60_000);
  const snapshot = (n: number) =>
    packagesNamed(Array.from({ length: 60 }, (_, i) => `lib-${n}-${String(i).padStart(2, '0')}`));
  let n = 1;
  const suite = useService(
    () => snapshot(n),
    () => ({ CHANGES_RETENTION: '0' }),
  );
  const startReplica = useReplicaStarter(suite);
  const publishNext = () => suite.publish(snapshot(++n));
  const namesOf = (entries: PackageEntry[]) => entries.map(({ name }) => name);

  it('can be walked through across a flip', async () => {
    const expected = namesOf(snapshot(n));
    let flip: Promise<unknown> | undefined;
    const walks = [`/search?limit=7&q=b-${n}`, '/browse?limit=20'].map(async (path) => {
      const { entries } = await walk(suite.service, path, async (pages) => {
        if (pages === 2) await (flip ??= publishNext());
      });
      expect(namesOf(entries)).to.deep.equal(expected);
    });
    await Promise.all(walks);
  });

  it('are gone after the second flip', async () => {
    const targets = await Promise.all(
      [`/search?q=b-${n}&limit=7`, '/browse?limit=7'].map(async (path) => {
        const { next = '' } = linksOf(await suite.service.get(path));
        return `${path.split('?')[0]}${next}`;
      }),
    );
    await publishNext();
    for (const target of targets) expect((await suite.service.get(target)).status).to.equal(200);
    await publishNext();
    for (const target of targets) {
      const detail = expectProblem(await suite.service.get(target), 410, 'snapshot_gone');
      expect(detail).to.contain('start again');
    }
  });

  it('are known to replicas that have not seen the flip', async () => {
    const replica = await startReplica();
    replica.stopPolling();
    for (let i = 0; i < 2; i++) {
      const before = await suite.service.snapshot();
      const snapshot = await publishNext();
      expect(await replica.snapshot()).not.to.equal(snapshot);
      for (const service of [suite.service, replica]) {
        const answer = await service.get(`/packages/lib-${n}-00?snapshot=${snapshot}`);
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.headers.get('X-Snapshot')).to.equal(snapshot);
        const earlier = await service.get(`/packages/lib-${n}-00?snapshot=${before}`);
        expectProblem(earlier, 404, 'unknown_package');
      }
    }
  });

  it('are read anew by a replica whose snapshot was deleted after two flips', async () => {
    const replica = await startReplica();
    replica.server.snapshots.stop();
    await publishNext();
    const snapshot = await publishNext();
    const answer = await replica.get(`/search?q=lib-${n}-00`);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.headers.get('X-Snapshot')).to.equal(snapshot);
    expect(namesOf(answer.body.results as PackageEntry[])).to.deep.equal([`lib-${n}-00`]);
  });

  it('are known to a replica that started after the flip', async () => {
    const before = await suite.service.snapshot();
    await publishNext();
    const replica = await startReplica();
    const answer = await replica.get(`/browse?limit=1&snapshot=${before}`);
    expect(answer.headers.get('X-Snapshot')).to.equal(before);
    expect(namesOf(answer.body.results as PackageEntry[])).to.deep.equal([`lib-${n - 1}-00`]);
  });

  it('that never existed get 410', async () => {
    const paths = ['/browse?', '/search?q=lib&', '/packages/lib?', '/lookup?name=a&', '/similar?name=a&'];
    const ask = (path: string) => suite.service.get(`${path}snapshot=20200101t000000z-00000000`);
    for (const answer of await Promise.all(paths.map(ask))) expectProblem(answer, 410, 'snapshot_gone');
  });

  // Every malformed cursor: test/unit/search/cursor.test.ts.
  it('are rejected like cursors if they are malformed or of another query', async () => {
    const after = cursorOf(await suite.service.get('/search?q=lib&limit=5'));
    const id = await suite.service.snapshot();
    await expectInvalid(
      suite.service,
      '/search?q=lib&snapshot=',
      `/search?q=lib&snapshot=${id.toUpperCase()}`,
      `/search?q=lib&snapshot=${id}&snapshot=${id}`,
      `/search?q=lib&after=${after}=`,
      `/search?q=LIB&after=${after}`,
    );
    const all = await suite.service.get('/search?q=lib&limit=10');
    // With another limit and without the snapshot, the results still continue.
    const rest = await suite.service.get(`/search?q=lib&limit=3&after=${after}`);
    expect(rest.body.results).to.deep.equal((all.body.results as object[]).slice(5, 8));
  });
});
