import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { integer, pick, seededRandom } from '../../fixtures/random.js';
import type { SearchPool } from '../../../src/elasticsearch/search-pool.js';
import { compare } from '../../../src/publish/compare.js';
import { PageReader } from '../../../src/publish/page-reader.js';
import { nameOf, type Difference } from '../../../src/snapshot/change-record.js';
import { encodeEntry, entryMembers, type PackageEntry } from '../../../src/snapshot/package-document.js';
import { packagesNamed } from '../../support/datasets.js';
import { STEP } from '../../support/step.js';

interface Body {
  size: number;
  query: { bool: { filter: { range: { 'name.lowercase': { gte?: string; lte?: string } } }[] } };
}

/** A pool that searches lists whose names are in order. From search `failsAt` on, it fails. */
function poolOf(lists: Record<string, PackageEntry[]>, failsAt = Infinity) {
  const searches: string[] = [];
  const search = (index: string, [{ size, query }]: [Body], opaqueId: string) => {
    const ranges = query.bool.filter.map(({ range }) => range['name.lowercase']);
    const { gte = '', lte = '~' } = Object.assign({}, ...ranges) as { gte?: string; lte?: string };
    if (searches.push(`${opaqueId} ${index} ${gte}-${lte} ${size}`) >= failsAt)
      return Promise.reject(new Error('no rights'));
    const found = lists[index]?.filter(({ name }) => gte < name && name <= lte) ?? [];
    return Promise.resolve([
      { entries: found.slice(0, size).map((entry) => encodeEntry(entryMembers(entry))) },
    ]);
  };
  return { pool: { search } as unknown as SearchPool, searches };
}

const numbered = (count: number) =>
  packagesNamed(Array.from({ length: count }, (_, i) => `p${String(i).padStart(5, '0')}`));

/** Compares two lists. */
async function differencesOf(
  older: PackageEntry[],
  newer: PackageEntry[],
  hasPackageNo = true,
  hasVolatile = false,
) {
  const { pool, searches } = poolOf({ older, newer });
  const rows: number[] = [];
  const batches: Difference[][] = [];
  const options = { ...STEP, hasPackageNo, hasVolatile, onRows: (count: number) => rows.push(count) };
  for await (const batch of compare(pool, 'older', 'newer', options)) batches.push(batch);
  return { batches, rows, searches };
}

/** Packages with random members. */
function randomPackages(seed: number, isDescribed: boolean): PackageEntry[] {
  const random = seededRandom(seed);
  const members = () => ({ no: integer(random, 1, 2), version: pick(random, ['1', '2']) });
  const described = () =>
    isDescribed && random() < 0.3 && { description: pick(random, ['short', 'long'.repeat(500)]) };
  return numbered(3000)
    .filter(() => random() < 0.8)
    .map((entry) => ({ ...entry, ...members(), ...described() }));
}

describe('compare', () => {
  for (const hasPackageNo of [true, false]) {
    for (const hasVolatile of [true, false]) {
      it(`finds each difference once: numbers ${hasPackageNo}, descriptions ${hasVolatile}`, async () => {
        const [older, newer] = [randomPackages(1, hasVolatile), randomPackages(2, hasVolatile)];
        const { batches, rows } = await differencesOf(older, newer, hasPackageNo, hasVolatile);
        const before = new Map(older.map((entry) => [entry.name, entry]));
        const expected = newer.flatMap((after): object[] => {
          const old = before.get(after.name);
          before.delete(after.name);
          const isSame = old?.version === after.version && (old.no === after.no || !hasPackageNo);
          return isSame ? [] : [old === undefined ? { after } : { before: old, after }];
        });
        expected.push(...[...before.values()].map((old) => ({ before: old })));
        const sorted = (all: object[]) => all.map((one) => JSON.stringify(one)).sort();
        expect(sorted(batches.flat())).to.deep.equal(sorted(expected));
        expect(rows.at(-1)).to.equal(newer.length);
      });
    }
  }

  it('reads nothing twice', async () => {
    const { batches, searches } = await differencesOf(numbered(250), numbered(250));
    expect(batches).to.deep.equal([]);
    const pages = [
      'newer -~ 100',
      'newer p00099-~ 2000',
      'older -p00099 100',
      'older p00099-p00099 2000',
      'older p00099-~ 2000',
    ];
    expect(searches).to.have.members(pages.map((page) => `compare ${page}`));
  });

  it('keeps few differences in memory, even if most packages were removed', async () => {
    const { batches } = await differencesOf(numbered(9000), packagesNamed(['p07777']));
    expect(new Set(batches.flat().map((one) => nameOf({ snapshot: '', ...one })))).to.have.property(
      'size',
      9000,
    );
    for (const batch of batches) expect(batch.length).to.be.within(1, 4000);
    expect(batches.length).to.be.within(3, 5);
  });

  it('fails if Elasticsearch rejects its searches', async () => {
    const { pool } = poolOf({ older: numbered(300), newer: numbered(300) }, 2);
    const options = { ...STEP, hasPackageNo: true, hasVolatile: false, onRows: () => undefined };
    await rejects(compare(pool, 'older', 'newer', options).next(), { message: 'no rights' });
    // A rejection that nobody handles would end the process.
    await new Promise(setImmediate);
  });
});

describe('PageReader', () => {
  const described = (count: number, length: number) =>
    numbered(count).map((entry) => ({ ...entry, description: 'x'.repeat(length) }));

  // prettier-ignore
  for (const [what, packages, sizes] of [
    ['that fill their pages', numbered(2100), [100, 2000, 2000]],
    ['of 2 KB', described(1000, 2000), [100, 714, 714]],
    ['of 30 KB', described(150, 30_000), [100, 100]],
    ['of which there are none', [], [100]],
  ] as [string, PackageEntry[], number[]][]) {
    it(`reads pages of about 2 MB: packages ${what}`, async () => {
      const { pool, searches } = poolOf({ packages });
      const reader = new PageReader(pool, 'packages', STEP);
      let page = await reader.read();
      for (; page.last !== undefined; page = await reader.read(page.last));
      expect(searches.map((search) => Number(search.split(' ')[3]))).to.deep.equal(sizes);
    });
  }
});
