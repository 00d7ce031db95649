import { expect } from 'chai';
import { obsolete } from '../../../src/publish/prune.js';
import { changesIndexOf } from '../../../src/snapshot/index-names.js';
import type { FoundIndex } from '../../../src/snapshot/snapshot.js';

const ALIAS = 'registry-packages';
/** Ids of snapshots, the newest first. */
const IDS = ['5', '4', '3', '2', '1'].map((day) => `2026010${day}t000000z-00000000`);
const [ID5, ID4, ID3, ID2, ID1] = IDS as [string, string, string, string, string];
const snapshot = (id: string) => `${ALIAS}-${id}`;
const changes = (id: string) => changesIndexOf(ALIAS, id);

/** A snapshot that these ones have led to, the newest first. */
const found = (id: string, ancestors?: string[]) =>
  ({
    index: snapshot(id),
    id,
    meta: ancestors === undefined ? undefined : { lineage: { ancestors } },
  }) as unknown as FoundIndex;

const ALL = IDS.flatMap((id) => [snapshot(id), changes(id)]);

describe('obsolete', () => {
  /** What is kept of all indices. */
  const keptOf = (retention: number, ...snapshots: (FoundIndex | undefined)[]) => {
    const old = obsolete(ALIAS, ALL, snapshots, retention);
    return ALL.filter((index) => !old.includes(index));
  };

  it('keeps the snapshots with the changes that have led to each of them', () => {
    expect(keptOf(3, found(ID5, [ID4, ID2, ID1]), found(ID3, [ID2]))).to.deep.equal([
      snapshot(ID5),
      changes(ID5),
      changes(ID4),
      snapshot(ID3),
      changes(ID3),
      changes(ID2),
    ]);
    expect(keptOf(3, found(ID5, [ID4]))).to.deep.equal([snapshot(ID5), changes(ID5)]);
  });

  it('keeps at most the retained number of changes of each snapshot', () => {
    const kept = (retention: number) =>
      keptOf(retention, found(ID5, [ID4, ID3, ID2, ID1])).filter((index) => index !== snapshot(ID5));
    expect(kept(0)).to.deep.equal([]);
    expect(kept(1)).to.deep.equal([changes(ID5)]);
    expect(kept(3)).to.deep.equal([changes(ID5), changes(ID4), changes(ID3)]);
    expect(kept(30)).to.deep.equal(IDS.slice(0, 4).map(changes));
  });

  it('keeps nothing of snapshots that do not exist', () => {
    expect(keptOf(30, undefined, undefined)).to.deep.equal([]);
  });

  it('keeps a snapshot that was written by another version', () => {
    expect(keptOf(30, found(ID4))).to.deep.equal([snapshot(ID4)]);
    const withoutChain = { ...found(ID4), meta: {} } as FoundIndex;
    expect(keptOf(30, withoutChain)).to.deep.equal([snapshot(ID4)]);
  });
});
