import { expect } from 'chai';
import Parser from 'rss-parser';
import { changesBetween, type ChangeResult } from '../fixtures/changes-oracle.js';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { Oracle } from '../fixtures/search-oracle.js';
import { SimilarityOracle } from '../fixtures/similarity-oracle.js';
import type { Match } from '../../src/search/name-filter.js';
import { rollBack } from '../../src/publish/rollback.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { UNCACHED } from '../support/background-reader.js';
import { packagesNamed } from '../support/datasets.js';
import { expectInvalid } from '../support/expect-problem.js';
import { cursorOf, linksOf, walk } from '../support/follow-next.js';
import { useReplicaStarter } from '../support/replica-starter.js';
import { useService, type Service } from '../support/service.js';
import { STEP } from '../support/step.js';

const changes = (service: Service, params: string) => walk<ChangeResult>(service, `/changes?${params}`);

/** The feed, with the names of its entries. */
async function feed(service: Service, params = '') {
  const { status, text, headers } = await service.get(`/changes.atom?${params}`);
  expect(status, text).to.equal(200);
  const parsed = await new Parser<object, { id: string }>().parseString(text);
  const names = parsed.items.map(({ title = '' }) => title.replace(/ [^ ]*$/, ''));
  const [, id = ''] = /<id>([^<]*)<\/id>/.exec(text) ?? [];
  return { ...parsed, id, names, ids: new Map(names.map((name, i) => [name, parsed.items[i]?.id])), headers };
}

/** Selects names from a list by the oracles. */
function selectorOf(packages: readonly PackageEntry[]) {
  const searched = new Oracle(packages);
  const compared = new SimilarityOracle(packages);
  return (filter: { q: string; match?: Match } | { like: string }) => {
    if ('like' in filter) return new Set(compared.similar(filter.like).map(({ name }) => name));
    return new Set(searched.search(filter.q, false, filter.match).map(({ name }) => name));
  };
}

describe('A watch of few of 2,000 additions', function () {
  this.timeout(60_000);
  const numbered = (entries: PackageEntry[]) => entries.map((entry, i) => ({ ...entry, no: i + 1 }));
  const base = packagesNamed(Array.from({ length: 2100 }, (_, i) => `base-${i}`));
  const matching = ['zebra', 'Zebra-x', 'a-zebra', 'ZEBRAS', 'b.zebra.c', '@z/zebra', 'zebr-zebra'];
  const alike = ['colosus', 'Col-ossus', 'colossuss', 'cloossus'];
  const others = Array.from({ length: 2000 - matching.length - alike.length }, (_, i) => `other-${i}`);
  // Their numbers are below those of a thousand others.
  const additions = [...others.slice(0, 900), ...matching, ...alike, ...others.slice(900)];
  const one = numbered([...base, ...packagesNamed(additions)]);
  const two = numbered([...one, ...packagesNamed(['later', 'colossus', 'zebra-2'])]);
  const three = two.filter(({ name }) => name !== 'zebra');
  const suite = useService(() => base);
  const startReplica = useReplicaStarter(suite);
  const queries = ['q=zebra', 'q=ZEBRA&match=prefix', 'q=zebra&match=exact', 'like=colossus'];
  const ids: string[] = [];
  const entryIds = new Map<string, string | undefined>();

  /** Expects these names in each filtered feed, newest first, with the ids that they had before. */
  async function expectFeeds(expected: string[][]): Promise<void> {
    for (const [i, query] of queries.entries()) {
      const { names, ids: found } = await feed(suite.service, query);
      expect(names, query).to.deep.equal(expected[i]);
      for (const [name, id] of found) {
        expect(entryIds.get(name) ?? id).to.equal(id);
        entryIds.set(name, id);
      }
    }
  }

  before(async () => {
    ids.push(await suite.service.snapshot(), await suite.publish(one));
  });

  it('has exactly these', async () => {
    const newestFirst = matching.toReversed();
    const prefixes = newestFirst.filter((name) => /^zebra/i.test(name));
    await expectFeeds([newestFirst, prefixes, ['zebra'], alike.toReversed()]);
    for (const [i, names] of [matching, prefixes, ['zebra'], alike].entries()) {
      const found = await changes(suite.service, `${queries[i]}&limit=3`);
      expect(found.map(({ name }) => name)).to.have.members(names);
    }
  });

  it('has a feed of its own, whose entries are those of the feed of all', async () => {
    const all = await feed(suite.service);
    const feeds = await Promise.all(
      [...queries, 'q=%26%3C%22%C2%A7 +$%26', 'q=ra+zeb&match=words'].map((query) =>
        feed(suite.service, query),
      ),
    );
    expect(new Set([all, ...feeds].map(({ id }) => id))).to.have.length(feeds.length + 1);
    expect(feeds.map(({ title }) => title)).to.deep.equal([
      'New packages of registry.example with “zebra” in the name',
      'New packages of registry.example whose name starts with “ZEBRA”',
      'New packages of registry.example named “zebra”',
      'New packages of registry.example with a name like “colossus”',
      'New packages of registry.example with “&<"§  $&” in the name',
      'New packages of registry.example with all words of “ra zeb” in the name',
    ]);
    for (const [i, { feedUrl, headers }] of feeds.entries()) {
      expect(headers.get('ETag')).not.to.equal(all.headers.get('ETag'));
      if (i < queries.length) expect(feedUrl).to.equal(`changes.atom?${queries[i]}`);
      const again = await feed(suite.service, feedUrl?.replace('changes.atom?', ''));
      expect(again.id).to.equal(feeds[i]?.id);
    }
    // The feed of all has only the newest hundred.
    const newest = await feed(suite.service, 'q=other-');
    expect([...newest.ids]).to.deep.equal([...all.ids]);
  });

  it('keeps the ids over rebuilds and a rollback', async () => {
    ids.push(await suite.publish(two));
    const added = [...matching, 'zebra-2'].toReversed();
    const prefixes = added.filter((name) => /^zebra/i.test(name));
    await expectFeeds([added, prefixes, ['zebra'], alike.toReversed()]);
    ids.push(await suite.publish(three));
    const without = (names: string[]) => names.filter((name) => name !== 'zebra');
    await expectFeeds([without(added), without(prefixes), [], alike.toReversed()]);
    expect(await changes(suite.service, `since=${ids[0]}&q=zebra&match=exact`)).to.deep.equal([]);
    expect(await changes(suite.service, `q=zebra&match=exact`)).to.have.length(1);
    await rollBack(suite.service.elasticsearch, suite.service.alias, STEP);
    await suite.service.refresh();
    await expectFeeds([added, prefixes, ['zebra'], alike.toReversed()]);
    expect(await changes(suite.service, `since=${ids[0]}&like=colossus`)).to.have.length(alike.length);
  });

  it('rejects two filters and cursors of another one', async () => {
    const { service } = suite;
    const first = await service.get(`/changes?since=${ids[0]}&q=zebra&limit=1`);
    const { next = '' } = linksOf(first);
    expect(next).to.match(/^\?since=[\w-]+&limit=1&q=zebra&snapshot=[\w-]+&after=[\w-]+$/);
    for (const params of ['', '&q=zebr', '&q=zebra&match=prefix', '&like=zebra'])
      await expectInvalid(service, `/changes?since=${ids[0]}${params}&after=${cursorOf(first)}`);
    for (const params of ['q=zebra&like=zebra', 'q=z', 'like=+', 'q=zebra&match=x', 'q=aa&q=aa'])
      await expectInvalid(service, `/changes?${params}`, `/changes.atom?${params}`);
  });

  it('of look-alikes costs three points', async () => {
    const replica = await startReplica({ RATE_LIMIT_POINTS: '100' });
    const left = async () => (await replica.get('/debug-ip')).body.limit.remaining as number;
    for (const [path, points] of [
      ['/changes', 1],
      ['/changes?q=zebra', 1],
      ['/changes?like=zebra', 3],
      ['/changes.atom?like=zebra', 3],
      ['/changes.atom?q=zebra&like=zebra', 1],
    ] as const) {
      const before = await left();
      await replica.get(path);
      expect(before - (await left()), path).to.equal(points);
    }
  });
});

describe('Watches of 100 random histories', function () {
  this.timeout(120_000);
  const random = seededRandom(28);
  const families = Array.from({ length: 100 }, (_, i) => `h${100 + i}`);
  const filler = packagesNamed(Array.from({ length: 1000 }, (_, i) => `filler.${i}`));
  const endings = ['-a', '-b', 'A', '-ab', '.ab', '-ba', '_abc', '-abcd', '-H1', 'x-h'];
  const snapshots: PackageEntry[][] = [];
  let no = filler.length;
  for (let n = 0; n < 4; n++) {
    const before = new Map(snapshots.at(-1)?.map((entry) => [entry.name, entry]));
    const names = families.flatMap((family) => endings.map((ending) => family + ending));
    const entries = names.flatMap((name) => {
      const old = before.get(name);
      // Added, removed, updated and added again.
      if (random() < 0.5) return old === undefined ? [] : [old];
      if (old !== undefined && random() < 0.5) return [];
      return packagesNamed([name]).map((entry) => ({ ...entry, no: old?.no ?? ++no, version: `${n}` }));
    });
    snapshots.push([...filler, ...entries]);
  }
  const filtersOf = (family: string) => [
    { q: family },
    {
      q: pick(random, [`${family}-`, family.slice(1), `${family}-A`]),
      match: pick(random, ['prefix', 'exact'] as const),
    },
    { q: `ab ${family}`, match: 'words' as const },
    { like: family + pick(random, endings) },
    { like: `${family}${pick(random, ['-aa', 'abce', '', '--B'])}` },
  ];
  const suite = useService(
    () => snapshots[0] ?? [],
    () => UNCACHED,
  );

  it('are what a filter of all changes leaves', async () => {
    const ids = [await suite.service.snapshot()];
    for (const packages of snapshots.slice(1)) ids.push(await suite.publish(packages));
    const all = snapshots.map((_, i) => changesBetween(snapshots.slice(i)));
    for (const { length } of all.slice(0, 3)) expect(length).to.be.greaterThan(300);
    const selectors = all.map(selectorOf);
    const { service } = suite;
    let found = 0;
    for (const family of families) {
      for (const filter of filtersOf(family)) {
        const i = integer(random, 0, 2);
        const params = new URLSearchParams({
          since: ids[i] ?? '',
          limit: pick(random, ['1000', '1000', '20']),
          ...filter,
        });
        const names = selectors[i]?.(filter);
        const expected = all[i]?.filter(({ name }) => names?.has(name)) ?? [];
        found += expected.length;
        expect(await changes(service, params.toString()), params.toString()).to.deep.equal(expected);
      }
    }
    expect(found).to.be.greaterThan(1000);
  });
});
