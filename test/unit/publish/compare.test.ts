import { expect } from 'chai';
import type { SearchPool } from '../../../src/elasticsearch/search-pool.js';
import { compare } from '../../../src/publish/compare.js';
import type { Difference } from '../../../src/snapshot/change-record.js';
import { encodeEntry, entryMembers, type PackageEntry } from '../../../src/snapshot/package-document.js';
import { packagesNamed } from '../../support/datasets.js';
import { STEP } from '../../support/step.js';

interface Body {
  size: number;
  query: { bool: { filter: { range: { 'name.lowercase': { gte?: string; lte?: string } } }[] } };
}

/** A pool that searches lists whose names are in order. */
function poolOf(lists: Record<string, PackageEntry[]>) {
  const searches: string[] = [];
  const search = (index: string, [{ size, query }]: [Body], opaqueId: string) => {
    const ranges = query.bool.filter.map(({ range }) => range['name.lowercase']);
    const { gte = '', lte = '~' } = Object.assign({}, ...ranges) as { gte?: string; lte?: string };
    searches.push(`${opaqueId} ${index} ${gte}-${lte} ${size}`);
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
  lists: { older: PackageEntry[]; newer: PackageEntry[] },
  { hasPackageNo = true, hasVolatile = false } = {},
) {
  const { pool, searches } = poolOf(lists);
  const rows: number[] = [];
  const batches: Difference[][] = [];
  const options = { ...STEP, hasPackageNo, hasVolatile, onRows: (count: number) => rows.push(count) };
  for await (const batch of compare(pool, 'older', 'newer', options)) batches.push(batch);
  return { batches, rows, searches };
}

/** Packages with members that differ between two lists in every combination. */
const listOf = (isOld: boolean, isDescribed: boolean) =>
  numbered(3000)
    .filter((_, i) => i % 7 !== (isOld ? 0 : 1))
    .map((entry, i) => ({
      ...entry,
      no: isOld || i % 3 > 0 ? 1 : 2,
      version: isOld || i % 5 > 0 ? '1' : '2',
      ...(isDescribed && i % 2 === 0 && { description: isOld ? 'old' : 'new'.repeat(500) }),
    }));

describe('compare', () => {
  for (const hasPackageNo of [true, false])
    for (const hasVolatile of [true, false])
      it(`finds each difference once: numbers ${hasPackageNo}, descriptions ${hasVolatile}`, async () => {
        const [older, newer] = [listOf(true, hasVolatile), listOf(false, hasVolatile)];
        const { batches, rows } = await differencesOf({ older, newer }, { hasPackageNo, hasVolatile });
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

  it('reads nothing twice', async () => {
    const { batches, searches } = await differencesOf({ older: numbered(250), newer: numbered(250) });
    expect(batches).to.deep.equal([]);
    const pages = ['newer -~ 100', 'newer p00099-~ 2000', 'older -p00099 100', 'older p00099-p00099 2000', 'older p00099-~ 2000']; // prettier-ignore
    expect(searches).to.have.members(pages.map((page) => `compare ${page}`));
  });

  it('keeps few differences in memory, even if most packages were removed', async () => {
    const { batches } = await differencesOf({ older: numbered(9000), newer: packagesNamed(['p07777']) });
    expect(batches.flat()).to.have.length(9000);
    for (const batch of batches) expect(batch.length).to.be.within(1, 4000);
    expect(batches.length).to.be.within(3, 5);
  });
});
