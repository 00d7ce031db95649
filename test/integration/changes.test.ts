import { expect } from 'chai';
import Parser from 'rss-parser';
import { applyChanges, changesBetween, type ChangeResult } from '../../fixtures/changes-oracle.js';
import { integer, seededRandom } from '../../fixtures/random.js';
import { rollBack } from '../../src/rebuild/rollback.js';
import type { PackageEntry } from '../../src/search/package-document.js';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { followNext, linksOf } from '../support/follow-next.js';
import { logLines, startService, useService, type Service, type SuiteService } from '../support/service.js';

const CASE_VARIANTS = ['lib', 'LIB', 'Lib', 'li-b', 'LİB', 'lib\u{10FFFF}', '\uE000lib', '🚀-lib', '🚀-LIB', `lib${'x'.repeat(509)}`, '"lib', '<b>&amp;']; // prettier-ignore

/** Rolls back to the previous snapshot, which must be `id`. */
async function rollBackTo({ server, elasticsearch, alias }: Service, id: string | undefined): Promise<void> {
  await rollBack(elasticsearch, alias, new AbortController().signal);
  await server.generations.refresh();
  expect(server.generations.current?.snapshot).to.equal(id);
}

/** A version longer than any other. */
const LONG_VERSION = 'v'.repeat(256);

const NO_SUCH_SNAPSHOT = '20200101t000000z-0123abcd';

function currentId({ server }: Service): string {
  return server.generations.current?.snapshot ?? '';
}

/** Rebuilds from other packages. @returns the id of the new snapshot. */
async function publish({ service, dataset }: SuiteService, csv: string): Promise<string> {
  const before = currentId(service);
  await dataset.write(csv);
  expect((await service.rebuild('&force=true')).status).to.equal(202);
  expect(service.server.rebuilds.lastFailure).to.equal(undefined);
  expect(currentId(service)).not.to.equal(before);
  return currentId(service);
}

async function allChanges(service: Service, params: string): Promise<ChangeResult[]> {
  const answers = await followNext(service, `/changes?${params}`);
  return answers.flatMap(({ body }) => body.results as ChangeResult[]);
}

/** Adds, removes and changes some packages at random. */
function mutate(packages: readonly PackageEntry[], seed: number, share: number): PackageEntry[] {
  const random = seededRandom(seed);
  let no = Math.max(...packages.map((entry) => entry.no));
  return packages.flatMap((entry) => {
    if (random() > share) return [entry];
    return [
      [],
      [{ ...entry, version: `${entry.version}+${seed}` }],
      [{ ...entry, url: `${entry.url}?${seed}` }],
      [{ ...entry, no: ++no }],
      [{ ...entry, name: entry.name.toUpperCase(), no: ++no }],
      [entry, { ...entry, name: `${entry.name}-${seed}`, no: ++no }],
    ][integer(random, 0, 5)] as PackageEntry[];
  });
}

function uniqueNames(packages: PackageEntry[]): PackageEntry[] {
  return [...new Map(packages.map((entry) => [entry.name, entry])).values()];
}

describe('/changes', function () {
  this.timeout(120_000);
  const first = [
    ...packagesNamed(CASE_VARIANTS),
    ...bundledPackages()
      .slice(0, 1500)
      .map((entry, i) => ({ ...entry, no: CASE_VARIANTS.length + i + 1 })),
  ];
  const snapshots = [first];
  for (let seed = 1; seed <= 3; seed++) {
    snapshots.push(uniqueNames(mutate(snapshots.at(-1) ?? [], seed, 0.1)));
  }
  // The first snapshot again, with one package updated.
  snapshots.push([{ ...(first[0] as PackageEntry), version: LONG_VERSION }, ...first.slice(1)]);

  for (const shards of [1, 3]) {
    describe(`over ${shards} shards`, () => {
      const suite = useService(
        () => first,
        () => ({ INDEX_SHARDS: String(shards), CACHE_MAX_BYTES: '0' }),
      );
      const ids: string[] = [];

      before(async () => {
        ids.push(currentId(suite.service));
        for (const packages of snapshots.slice(1)) ids.push(await publish(suite, toCsv(packages)));
      });

      for (const limit of [1000, 100, 37]) {
        it(`returns the net changes since each snapshot, ${limit} per page`, async () => {
          for (const [i, id] of ids.entries()) {
            const changes = await allChanges(suite.service, `since=${id}&limit=${limit}`);
            expect(changes).to.deep.equal(changesBetween(snapshots.slice(i)));
            const replayed = applyChanges(snapshots[i] ?? [], changes);
            expect(replayed).to.deep.equal(new Map(snapshots.at(-1)?.map((entry) => [entry.name, entry])));
          }
        });
      }

      it('starts from the previous snapshot without since, and names both snapshots', async () => {
        const answer = await suite.service.get('/changes?limit=3');
        expect(answer.body).to.deep.equal({
          from: ids.at(-2),
          to: ids.at(-1),
          count: 3,
          results: changesBetween(snapshots.slice(-2)).slice(0, 3),
        });
        expect(answer.headers.get('X-Snapshot')).to.equal(ids.at(-1));
        const next = new URLSearchParams(linksOf(answer)['next']);
        expect(next.get('since')).to.equal(ids.at(-2));
        expect(next.get('snapshot')).to.equal(ids.at(-1));
        expect(next.get('limit')).to.equal('3');
      });

      it('returns nothing since the current snapshot', async () => {
        const id = ids.at(-1);
        const answer = await suite.service.get(`/changes?since=${id}`);
        expect(answer.body).to.deep.equal({ from: id, to: id, count: 0, results: [] });
        expect(answer.headers.get('Link')).to.equal(null);
      });

      it('can end at the previous snapshot, but at no earlier one', async () => {
        const previous = ids.at(-2);
        const changes = await allChanges(suite.service, `since=${ids[1]}&snapshot=${previous}`);
        expect(changes).to.deep.equal(changesBetween(snapshots.slice(1, -1)));
        expectProblem(await suite.service.get(`/changes?snapshot=${ids[1]}`), 410, 'snapshot_gone');
        const later = await suite.service.get(`/changes?since=${ids.at(-1)}&snapshot=${previous}`);
        expectProblem(later, 410, 'snapshot_gone');
      });

      it('rejects other snapshots, cursors and limits', async () => {
        const { service } = suite;
        expectProblem(await service.get(`/changes?since=${NO_SUCH_SNAPSHOT}`), 410, 'snapshot_gone');
        const page = await service.get(`/changes?since=${ids[0]}&limit=1`);
        const after = new URLSearchParams(linksOf(page)['next']).get('after');
        for (const params of [
          'since=x',
          `since=${ids[0]}&since=${ids[0]}`,
          'limit=0',
          'limit=-1',
          'snapshot=x',
          'after=x',
          `after=${after}`,
          `since=${ids[1]}&after=${after}`,
        ]) {
          expectProblem(await service.get(`/changes?${params}`), 400, 'invalid_parameter');
        }
        const most = await service.get(`/changes?since=${ids[0]}&limit=99999999999999999999`);
        expect(most.status).to.equal(200);
      });

      it('returns 304 to a client that has the response', async () => {
        const path = `/changes?since=${ids[0]}`;
        const etag = (await suite.service.get(path)).headers.get('ETag') ?? '';
        const again = await suite.service.get(path, { headers: { 'If-None-Match': etag } });
        expect(again.status).to.equal(304);
        expect(again.headers.get('X-Snapshot')).to.equal(ids.at(-1));
      });

      it('can be followed to the end while other snapshots go live', async () => {
        const { service } = suite;
        const since = ids[0] ?? '';
        const expected = changesBetween(snapshots);
        const answers = await followNext(service, `/changes?since=${since}&limit=100`, async (pages) => {
          if (pages === 1) await publish(suite, toCsv(mutate(first, 9, 0.05)));
        });
        expect(answers.length).to.be.greaterThan(1);
        expect(answers.flatMap(({ body }) => body.results as ChangeResult[])).to.deep.equal(expected);
        expect(new Set(answers.map(({ body }) => body.to as string))).to.deep.equal(new Set([ids.at(-1)]));
        await publish(suite, toCsv(snapshots.at(-1) ?? []));
      });

      it('returns many changes that cancel each other out as pages with fewer of them', async () => {
        const { service } = suite;
        const since = currentId(service);
        const packages = snapshots.at(-1) ?? [];
        const other = packages.map((entry, i) => (i % 3 === 0 ? { ...entry, version: 'other' } : entry));
        for (const each of [other, packages, other, packages]) await publish(suite, toCsv(each));
        const answers = await followNext(service, `/changes?since=${since}&limit=100`);
        expect(answers.length).to.be.greaterThan(1);
        for (const { body } of answers) expect(body.count).to.equal(0);
      });
    });
  }
});

describe('The chain of snapshots', function () {
  this.timeout(120_000);
  const packages = packagesNamed(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
  const suite = useService(
    () => packages,
    () => ({ CHANGES_RETENTION: '3' }),
  );
  const version = (to: string) =>
    toCsv(packages.map((entry, i) => (i === 0 ? { ...entry, version: to } : entry)));
  const changesIndices = async () => {
    const { elasticsearch, alias } = suite.service;
    return Object.keys(await elasticsearch.indices.get({ index: `${alias}-changes-*` }));
  };
  const status = async (since: string) => (await suite.service.get(`/changes?since=${since}`)).status;

  it('starts with a snapshot that has no changes', async () => {
    const id = currentId(suite.service);
    expect((await suite.service.get('/changes')).body).to.deep.equal({
      from: id,
      to: id,
      count: 0,
      results: [],
    });
    expect(await changesIndices()).to.deep.equal([]);
  });

  it('is as long as CHANGES_RETENTION, even after a rollback', async () => {
    const ids = [currentId(suite.service)];
    for (let i = 0; i < 6; i++) ids.push(await publish(suite, version(`2.${i}`)));
    const statuses = await Promise.all(ids.map(status));
    expect(statuses).to.deep.equal([410, 410, 410, 200, 200, 200, 200]);
    // One more, because the previous snapshot also has three.
    expect(await changesIndices()).to.have.length(4);
    await rollBackTo(suite.service, ids[5]);
    expect(await Promise.all(ids.map(status))).to.deep.equal([410, 410, 200, 200, 200, 200, 410]);
    const later = await publish(suite, version('3'));
    expect(await Promise.all([...ids, later].map(status))).to.deep.equal([
      410, 410, 410, 200, 200, 200, 410, 200,
    ]);
    expect(await changesIndices()).to.have.length(4);
  });

  it('is replaced by a new one if more than half of all names changed, which is logged', async () => {
    const since = currentId(suite.service);
    logLines.length = 0;
    await publish(suite, toCsv(packages.map((entry, i) => (i < 5 ? { ...entry, version: 'new' } : entry))));
    expectProblem(await suite.service.get(`/changes?since=${since}`), 410, 'snapshot_gone');
    expect((await suite.service.get('/changes')).body).to.include({ count: 0 });
    const lines = logLines.filter(({ msg }) => String(msg).includes('starts a new chain'));
    expect(lines).to.have.length(1);
    expect(JSON.stringify(lines)).to.include('more than half of all names changed');
    const next = await publish(
      suite,
      toCsv(packages.map((entry, i) => (i < 5 ? { ...entry, version: i < 2 ? 'newer' : 'new' } : entry))),
    );
    expect((await suite.service.get(`/changes?since=${next}`)).status).to.equal(200);
    expect((await suite.service.get('/changes')).body.count).to.equal(2);
  });

  it('is replaced by a new one if the previous index is closed, without waiting for it', async () => {
    const { elasticsearch, server } = suite.service;
    const index = server.generations.current?.index ?? '';
    const since = currentId(suite.service);
    await elasticsearch.indices.close({ index });
    const id = await publish(suite, version('after a closed one'));
    expect((await suite.service.get('/changes')).body).to.include({ from: id, to: id, count: 0 });
    expectProblem(await suite.service.get(`/changes?since=${since}`), 410, 'snapshot_gone');
  });

  it('is gone if its index was deleted', async () => {
    const since = currentId(suite.service);
    const id = await publish(suite, version('x'));
    const { elasticsearch, alias } = suite.service;
    await elasticsearch.indices.delete({ index: `${alias}-changes-${id}` });
    expectProblem(await suite.service.get(`/changes?since=${since}&limit=3`), 410, 'snapshot_gone');
  });

  it('is unavailable if the snapshot was not compared, until the next rebuild', async () => {
    const { elasticsearch, server } = suite.service;
    const { index = '', snapshot = '' } = server.generations.current ?? {};
    const { mappings } = (await elasticsearch.indices.getMapping({ index }))[index] ?? {};
    const _meta = { ...mappings?._meta };
    delete _meta['lineage'];
    delete _meta['has_package_no'];
    await elasticsearch.indices.putMapping({ index, _meta });
    const replica = await startService({ CHANGES_RETENTION: '3' }, suite.service.slug);
    try {
      for (const path of ['/changes', `/changes?since=${snapshot}`, '/changes.atom']) {
        const answer = await fetch(replica.url + path);
        expect(answer.status, path).to.equal(503);
        expect(answer.headers.get('Retry-After')).to.equal('60');
        expect(((await answer.json()) as { code: string }).code).to.equal('search_unavailable');
      }
      await publish(suite, version('y'));
      await replica.server.generations.refresh();
      expect((await replica.get(`/changes?since=${snapshot}`)).body.count).to.equal(1);
    } finally {
      await replica.stop();
    }
  });

  it('does not count changed numbers that are only positions', async () => {
    const csv = (names: string) =>
      ['name,url', ...Array.from(names, (name) => `${name},https://r.example/${name}`), ''].join('\n');
    const since = await publish(suite, csv('bcdefgh'));
    await publish(suite, csv('abcdefgh'));
    const { body } = await suite.service.get(`/changes?since=${since}`);
    expect(body.results).to.deep.equal([
      { change: 'added', no: 1, name: 'a', version: 'latest', url: 'https://r.example/a' },
    ]);
  });
});

describe('A replica that has not seen a flip yet', function () {
  this.timeout(60_000);
  const packages = packagesNamed(['alpha', 'beta', 'gamma', 'delta']);
  const suite = useService(() => packages);

  it('knows the snapshot that another replica serves', async () => {
    const replica = await startService({ DATASET_URL: suite.dataset.url }, suite.service.slug);
    try {
      for (let i = 0; i < 5; i++) {
        const id = await publish(suite, toCsv(packages.slice(0, 4 - (i % 2))));
        expect((await replica.get(`/changes?since=${id}`)).body).to.include({ from: id, to: id, count: 0 });
      }
    } finally {
      await replica.stop();
    }
  });
});

describe('A replica with CHANGES_RETENTION=0 next to one that records changes', function () {
  this.timeout(60_000);
  const packages = packagesNamed(['alpha', 'beta', 'gamma', 'delta']);
  const suite = useService(() => packages);

  it('reports no changes', async () => {
    await publish(suite, toCsv(packages.slice(1)));
    const counted = await suite.service.get('/stats');
    expect(counted.headers.get('X-Snapshot-Changes')).to.equal('added=0, removed=1, updated=0');
    const replica = await startService(
      { DATASET_URL: suite.dataset.url, CHANGES_RETENTION: '0' },
      suite.service.slug,
    );
    try {
      const answer = await replica.get('/stats');
      expect(answer.headers.get('X-Snapshot')).to.equal(counted.headers.get('X-Snapshot'));
      expect(answer.headers.get('X-Snapshot-Changes')).to.equal(null);
    } finally {
      await replica.stop();
    }
  });
});

describe('CHANGES_RETENTION=0', function () {
  this.timeout(60_000);
  const packages = packagesNamed(['alpha', 'beta', 'gamma', 'delta']);
  const suite = useService(
    () => packages,
    () => ({ CHANGES_RETENTION: '0' }),
  );

  it('disables /changes and the feed, compares nothing, and removes recorded changes', async () => {
    const { elasticsearch, alias } = suite.service;
    await elasticsearch.indices.create({ index: `${alias}-changes-${NO_SUCH_SNAPSHOT}` });
    await publish(suite, toCsv(packages.slice(1)));
    expect(
      await elasticsearch.indices.exists({ index: `${alias}-changes-*`, allow_no_indices: false }),
    ).to.equal(false);
    for (const path of ['/changes', '/changes.atom']) {
      expectProblem(await suite.service.get(path), 404, 'not_found');
    }
    const { body } = await suite.service.get('/openapi.json');
    expect(Object.keys(body.paths as object).filter((path) => path.includes('changes'))).to.deep.equal([]);
  });
});

describe('/changes.atom', function () {
  this.timeout(60_000);
  const packages = packagesNamed(Array.from({ length: 300 }, (_, i) => `package-${i + 1}`));
  const suite = useService(() => packages);
  const added = (names: string[], from = 1000) =>
    packagesNamed(names).map((entry, i) => ({ ...entry, no: from + i, version: '1.0 <b>&</b> ]]>' }));

  async function feed() {
    const response = await fetch(`${suite.service.url}/changes.atom`);
    expect(response.status).to.equal(200);
    expect(response.headers.get('Content-Type')).to.equal('application/atom+xml; charset=utf-8');
    expect(response.headers.get('X-Snapshot')).to.equal(currentId(suite.service));
    return new Parser<object, { id: string; link: string }>().parseString(await response.text());
  }

  it('is empty for the first snapshot', async () => {
    const { items, title } = await feed();
    expect(items).to.deep.equal([]);
    expect(title).to.equal('New packages of registry.example');
  });

  it('lists added packages, newest first, with permanent ids', async () => {
    const strange = ['<script>alert(1)</script>', 'a\u0001b', '🚀', 'x\uFFFEy', '&amp;', ']]>', 'tab\there'];
    const one = added(strange);
    await publish(suite, toCsv([...packages, ...one]));
    const before = await feed();
    // The parser does not decode the HTML of titles.
    expect(
      before.items.map(({ title = '' }) => title.replace(/&lt;/g, '<').replace(/&amp;/g, '&')),
    ).to.deep.equal(
      one.map(({ name, version }) => `${name.replace(/[\u0001\uFFFE]/g, '\uFFFD')} ${version}`).reverse(),
    );
    expect(new Set(before.items.map(({ id }) => id))).to.have.length(strange.length);
    for (const { id } of before.items) {
      expect(id).to.match(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
    const others = added(
      Array.from({ length: 120 }, (_, i) => `later-${i}`),
      2000,
    );
    await publish(suite, toCsv([...packages, ...one.slice(1), ...others.slice(0, 95)]));
    const after = await feed();
    expect(after.items).to.have.length(100);
    expect(after.items[0]?.title).to.match(/^later-94 /);
    // The last five were added by the previous snapshot and not removed since.
    expect(after.items.slice(95)).to.deep.equal(before.items.slice(0, 5));
    const again = await fetch(`${suite.service.url}/changes.atom`, {
      headers: {
        'If-None-Match': (await fetch(`${suite.service.url}/changes.atom`)).headers.get('ETag') ?? '',
      },
    });
    expect(again.status).to.equal(304);
  });
});
