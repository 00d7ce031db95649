import { expect } from 'chai';
import Parser from 'rss-parser';
import { applyChanges, changesBetween, type ChangeResult } from '../fixtures/changes-oracle.js';
import { integer, seededRandom } from '../fixtures/random.js';
import { rollBack } from '../../src/publish/rollback.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { UNCACHED } from '../support/background-reader.js';
import { bundledPackages, packagesNamed } from '../support/datasets.js';
import { expectInvalid, expectProblem } from '../support/expect-problem.js';
import { cursorOf, followNext, linksOf, walk } from '../support/follow-next.js';
import { servedIndex } from '../support/served-index.js';
import { useService, type Service } from '../support/service.js';
import { useReplicaStarter } from '../support/replica-starter.js';
import { metaWith } from '../support/snapshot-meta.js';
import { STEP } from '../support/step.js';

const CASE_VARIANTS = ['lib', 'LIB', 'Lib', 'li-b', 'LİB', 'lib\u{10FFFF}', '\uE000lib', '🚀-lib', '🚀-LIB', `lib${'x'.repeat(509)}`, '"lib', '<b>&amp;']; // prettier-ignore

const FIRST = [...packagesNamed(CASE_VARIANTS), ...bundledPackages().slice(0, 300)].map((entry, i) => ({
  ...entry,
  no: i + 1,
}));

const allChanges = (service: Service, params: string) => walk<ChangeResult>(service, `/changes?${params}`);

/** Expects that the changes since a snapshot are gone, for a reason that has these words. */
async function expectGone(service: Service, params: string, reason: string): Promise<void> {
  const detail = expectProblem(await service.get(`/changes?${params}`), 410, 'snapshot_gone');
  expect(detail).to.include(reason);
}

const DELETED = 'changes after since were deleted; fetch the whole list again';
const NOT_IN_CHAIN = 'since did not lead to the snapshot that is read, or is older';

/** Packages with another version, if `isChanged`. */
function updated(
  packages: readonly PackageEntry[],
  version: string,
  isChanged: (i: number) => boolean,
): PackageEntry[] {
  return packages.map((entry, i) => (isChanged(i) ? { ...entry, version } : entry));
}

/** URLs of packages, and the IRIs that link to them. */
const IRIS: [url: string, iri: string][] = [
  ['https://example.test/p/100%', 'https://example.test/p/100%25'],
  ['https://example.test/%ZZ%2', 'https://example.test/%25ZZ%252'],
  ['https://example.test/a[x]\\|^z', 'https://example.test/a%5Bx%5D/%7C%5Ez'],
  ['https://example.test/%5B%41%2F', 'https://example.test/%5B%41%2F'],
  ['https://[2001:db8::1]:8443/?a[b]=`{c}`', 'https://[2001:db8::1]:8443/?a%5Bb%5D=%60%7Bc%7D%60'],
  ['https://a%@example.test/é#b#c[', 'https://a%25@example.test/%C3%A9#b%23c%5B'],
  ['https://bücher.example\\a"<b>', 'https://xn--bcher-kva.example/a%22%3Cb%3E'],
];

/** Adds, removes and changes a tenth of the packages at random. */
function mutated(packages: readonly PackageEntry[], seed: number): PackageEntry[] {
  const random = seededRandom(seed);
  let no = Math.max(...packages.map((entry) => entry.no));
  const changed = packages.flatMap((entry) => {
    if (random() > 0.1) return [entry];
    return [
      [],
      [{ ...entry, version: `${entry.version}+${seed}` }],
      [{ ...entry, url: `${entry.url}?${seed}` }],
      [{ ...entry, no: ++no }],
      [{ ...entry, name: entry.name.toUpperCase(), no: ++no }],
      [entry, { ...entry, name: `${entry.name}-${seed}`, no: ++no }],
    ][integer(random, 0, 5)] as PackageEntry[];
  });
  return [...new Map(changed.map((entry) => [entry.name, entry])).values()];
}

/** `FIRST`, two changed snapshots, and `FIRST` again with one package updated to the longest version. */
const SNAPSHOTS = [FIRST];
for (let seed = 1; seed <= 2; seed++) SNAPSHOTS.push(mutated(SNAPSHOTS.at(-1) ?? [], seed));
SNAPSHOTS.push(updated(FIRST, 'v'.repeat(256), (i) => i === 0));

describe('/changes', function () {
  this.timeout(60_000);
  const suite = useService(
    () => FIRST,
    () => UNCACHED,
  );
  const ids: string[] = [];

  before(async () => {
    ids.push(await suite.service.snapshot());
    for (const packages of SNAPSHOTS.slice(1)) ids.push(await suite.publish(packages));
  });

  for (const limit of [1000, 37, 5]) {
    it(`returns the net changes since each snapshot, ${limit} per page`, async () => {
      for (const [i, id] of ids.entries()) {
        const changes = await allChanges(suite.service, `since=${id}&limit=${limit}`);
        expect(changes).to.deep.equal(changesBetween(SNAPSHOTS.slice(i)));
        const replayed = applyChanges(SNAPSHOTS[i] ?? [], changes);
        expect(replayed).to.deep.equal(new Map(SNAPSHOTS.at(-1)?.map((entry) => [entry.name, entry])));
      }
    });
  }

  it('starts from the previous snapshot without since', async () => {
    const answer = await suite.service.get('/changes?limit=3');
    const [from, to] = [ids.at(-2), ids.at(-1)];
    const results = changesBetween(SNAPSHOTS.slice(-2)).slice(0, 3);
    expect(answer.body).to.deep.equal({ from, to, count: 3, results });
    expect(answer.headers.get('X-Snapshot')).to.equal(to);
    const next = new URLSearchParams(linksOf(answer)['next']);
    expect(Object.fromEntries(next)).to.include({ since: from, snapshot: to, limit: '3' });
  });

  it('can end at the previous snapshot, but at no earlier one', async () => {
    const previous = ids.at(-2);
    const changes = await allChanges(suite.service, `since=${ids[1]}&snapshot=${previous}`);
    expect(changes).to.deep.equal(changesBetween(SNAPSHOTS.slice(1, -1)));
    await expectGone(suite.service, `snapshot=${ids[1]}`, 'snapshot is neither the current nor the previous');
    await expectGone(suite.service, `since=${ids.at(-1)}&snapshot=${previous}`, NOT_IN_CHAIN);
  });

  it('rejects other snapshots, cursors and limits', async () => {
    const { service } = suite;
    await expectGone(service, 'since=20200101t000000z-0123abcd', NOT_IN_CHAIN);
    const after = cursorOf(await service.get(`/changes?since=${ids[0]}&limit=1`));
    const rejected = ['since=x', 'limit=0', 'snapshot=x', 'after=x', `since=${ids[1]}&after=${after}`];
    await expectInvalid(service, ...rejected.map((params) => `/changes?${params}`));
  });

  // The last test, because it publishes a snapshot.
  it('can be followed to the end while another snapshot goes live', async () => {
    const path = `/changes?since=${ids[1]}&limit=40`;
    const answers = await followNext(suite.service, path, async (pages) => {
      if (pages === 1) await suite.publish(mutated(FIRST, 9));
    });
    expect(answers.length).to.be.greaterThan(1);
    const results = answers.flatMap(({ body }) => body.results as ChangeResult[]);
    expect(results).to.deep.equal(changesBetween(SNAPSHOTS.slice(1)));
    expect(new Set(answers.map(({ body }) => body.to as string))).to.deep.equal(new Set([ids.at(-1)]));
  });
});

describe('The chain of snapshots', function () {
  this.timeout(60_000);
  const packages = packagesNamed(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
  const env = { CHANGES_RETENTION: '2' };
  const suite = useService(
    () => packages,
    () => env,
  );
  const startReplica = useReplicaStarter(suite);
  const version = (to: string) => updated(packages, to, (i) => i === 0);
  const changesIndices = async () => {
    const { elasticsearch, alias } = suite.service;
    return Object.keys(await elasticsearch.indices.get({ index: `${alias}-changes-*` }));
  };
  const status = async (since: string) => (await suite.service.get(`/changes?since=${since}`)).status;

  const ids: string[] = [];
  const statuses = () => Promise.all(ids.map(status));

  it('is as long as CHANGES_RETENTION', async () => {
    const { elasticsearch, alias } = suite.service;
    ids.push(await suite.service.snapshot());
    expect((await suite.service.get('/changes')).body).to.include({ from: ids[0], to: ids[0] });
    for (let i = 0; i < 4; i++) ids.push(await suite.publish(version(`2.${i}`)));
    expect(await statuses()).to.deep.equal([410, 410, 200, 200, 200]);
    await expectGone(suite.service, `since=${ids[0]}`, NOT_IN_CHAIN);
    // One more, because the previous snapshot also has two.
    expect(await changesIndices()).to.have.length(3);
    const [found] = Object.values(await elasticsearch.indices.getMapping({ index: alias }));
    expect(found?.mappings._meta?.['lineage'].ancestors).to.deep.equal([ids[3], ids[2]]);
  });

  it('is as long after a rollback', async () => {
    await rollBack(suite.service.elasticsearch, suite.service.alias, STEP);
    await suite.service.refresh();
    expect(await statuses()).to.deep.equal([410, 200, 200, 200, 410]);
    await expectGone(suite.service, `since=${ids[4]}`, NOT_IN_CHAIN);
    ids.push(await suite.publish(version('3')));
    expect(await statuses()).to.deep.equal([410, 410, 200, 200, 410, 200]);
    expect(await changesIndices()).to.have.length(3);
  });

  it('is replaced by a new one if the previous index is closed, without waiting for it', async () => {
    const since = await suite.service.snapshot();
    await suite.service.elasticsearch.indices.close({ index: await servedIndex(suite.service) });
    const id = await suite.publish(version('after a closed one'));
    expect((await suite.service.get('/changes')).body).to.include({ from: id, to: id, count: 0 });
    await expectGone(suite.service, `since=${since}`, NOT_IN_CHAIN);
  });

  it('begins after an index that was deleted', async () => {
    const { elasticsearch, alias } = suite.service;
    const first = await suite.service.snapshot();
    const second = await suite.publish(version('w'));
    const third = await suite.publish(version('x'));
    for (const [deleted, since] of [
      [second, first],
      [third, second],
    ] as const) {
      expect(await status(since)).to.equal(200);
      await elasticsearch.indices.delete({ index: `${alias}-changes-${deleted}` });
      await expectGone(suite.service, `since=${since}&limit=3`, DELETED);
      expect((await suite.service.get('/changes.atom')).status).to.equal(200);
    }
    expect((await suite.service.get('/changes')).body).to.include({ from: third, count: 0 });
    await suite.publish(version('z'));
    expect(await status(third)).to.equal(200);
  });

  it('is unavailable if the snapshot was not compared, until the next rebuild', async () => {
    const { elasticsearch } = suite.service;
    const [index, snapshot] = [await servedIndex(suite.service), await suite.service.snapshot()];
    await elasticsearch.indices.putMapping({ index, _meta: metaWith(packages.length) });
    const replica = await startReplica(env);
    for (const path of [`/changes?since=${snapshot}`, '/changes.atom']) {
      const answer = await replica.get(path);
      expectProblem(answer, 503, 'search_unavailable');
      expect(answer.headers.get('Retry-After')).to.equal('60');
    }
    await suite.publish(version('y'));
    await replica.refresh();
    expect((await replica.get(`/changes?since=${snapshot}`)).body.count).to.equal(1);
  });

  it('does not count changed numbers that are only positions', async () => {
    const csv = (names: string) =>
      ['name,url', ...Array.from(names, (name) => `${name},https://r.example/${name}`), ''].join('\n');
    const since = await suite.publish(csv('bcdefgh'));
    await suite.publish(csv('abcdefgh'));
    expect((await suite.service.get(`/changes?since=${since}`)).body.results).to.deep.equal([
      { change: 'added', no: 1, name: 'a', version: 'latest', url: 'https://r.example/a' },
    ]);
  });

  it('is known to a replica that has not seen the flip', async () => {
    const replica = await startReplica(env);
    replica.stopPolling();
    const id = await suite.publish(packages.slice(1));
    expect(await replica.snapshot()).not.to.equal(id);
    const answer = await replica.get(`/changes?since=${id}`);
    expect(answer.body).to.deep.equal({ from: id, to: id, count: 0, results: [] });
    expect(answer.headers.get('Link')).to.equal(null);
  });

  it('is not served by a replica with CHANGES_RETENTION=0', async () => {
    const replica = await startReplica({ CHANGES_RETENTION: '0' });
    for (const path of ['/changes', '/changes.atom'])
      expectProblem(await replica.get(path), 404, 'not_found');
    expect(await (await fetch(replica.url)).text()).not.to.include('changes.atom');
    const { paths } = (await replica.get('/openapi.json')).body as { paths: object };
    expect(Object.keys(paths).filter((path) => path.includes('changes'))).to.deep.equal([]);
  });
});

describe('/changes.atom', function () {
  this.timeout(60_000);
  const packages = packagesNamed(Array.from({ length: 300 }, (_, i) => `package-${i + 1}`));
  const suite = useService(() => packages);
  const added = (names: string[], from: number) =>
    packagesNamed(names).map((entry, i) => ({ ...entry, no: from + i, version: '1.0 <b>&</b> ]]>' }));

  async function feed() {
    const response = await fetch(`${suite.service.url}/changes.atom`);
    expect(response.status).to.equal(200);
    expect(response.headers.get('Content-Type')).to.equal('application/atom+xml; charset=utf-8');
    expect(response.headers.get('X-Snapshot')).to.equal(await suite.service.snapshot());
    return new Parser<object, { id: string; link: string }>().parseString(await response.text());
  }

  it('links added packages, newest first, with permanent ids', async () => {
    expect(await feed()).to.deep.include({ items: [], title: 'New packages of registry.example' });
    const strange = ['<script>alert(1)</script>', '🚀', 'x\uFFFEy', '&amp;', ']]>', 'a\u2028b', 'a b'];
    const one = added(strange, 1000).map((entry, i) => ({ ...entry, url: IRIS[i]?.[0] ?? '' }));
    await suite.publish([...packages, ...one]);
    const before = await feed();
    expect(before.items.map(({ title }) => title)).to.deep.equal(
      one.map(({ name, version }) => `${name.replace(/\uFFFE/g, '\uFFFD')} ${version}`).reverse(),
    );
    expect(before.items.map(({ link }) => link).reverse()).to.deep.equal(IRIS.map(([, iri]) => iri));
    expect(before.feedUrl).to.equal('changes.atom');
    const later = Array.from({ length: 95 }, (_, i) => `later-${i}`);
    await suite.publish([...packages, ...one.slice(1), ...added(later, 2000)]);
    const after = await feed();
    expect(after.items).to.have.length(100);
    expect(after.items[0]?.title).to.match(/^later-94 /);
    // The last five were added by the previous snapshot and not removed since.
    expect(after.items.slice(95)).to.deep.equal(before.items.slice(0, 5));
  });
});
