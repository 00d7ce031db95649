import { expect } from 'chai';
import { encodeRecord, type ChangeRecord } from '../../../src/snapshot/change-record.js';
import { readChanges } from '../../../src/search/changes-page.js';
import type { SearchBody } from '../../../src/elasticsearch/msearch.js';

const SNAPSHOTS = ['s1', 's2'];

/** Two records for each name, one per snapshot; the second may undo the first. */
function records(names: readonly string[], isUndone: boolean): ChangeRecord[] {
  const entry = (name: string, version: string) => ({ no: 1, name, version, url: '' });
  return names.flatMap((name) => [
    // The later one first, because the order is not guaranteed.
    { snapshot: 's2', before: entry(name, '2'), after: entry(name, isUndone ? '1' : '3') },
    { snapshot: 's1', before: entry(name, '1'), after: entry(name, '2') },
  ]);
}

/** Responds to searches as Elasticsearch does, from records in name order. */
function searching(all: readonly ChangeRecord[]) {
  const asked: { size: number; after: string | undefined }[] = [];
  const run = (bodies: SearchBody[]) => {
    const body = bodies[0] as { size: number; query: { bool: { filter: { range: object }[] } } };
    const [range] = body.query.bool.filter;
    const after = (range?.range as { 'name.lowercase'?: { gte: string } } | undefined)?.['name.lowercase']
      ?.gte;
    asked.push({ size: body.size, after });
    const found = all.filter((record) => after === undefined || (record.after?.name ?? '') > after);
    return Promise.resolve([{ entries: found.slice(0, body.size).map(encodeRecord), exact: 0 }]);
  };
  return { run, asked };
}

const query = (limit: number, after?: string) => ({ snapshots: SNAPSHOTS, hasPackageNo: true, limit, after });

const NAMES = Array.from({ length: 50 }, (_, i) => `name-${String(i).padStart(2, '0')}`);

describe('readChanges', () => {
  for (const limit of [1, 7, 50]) {
    it(`returns each change once by following next, ${limit} at a time`, async () => {
      const { run } = searching(records(NAMES, false));
      const names: string[] = [];
      for (let after: string | undefined, i = 0; i <= NAMES.length; i++) {
        const { changes, next } = await readChanges(run, query(limit, after));
        expect(changes.length).to.be.at.most(limit);
        names.push(...changes.map(({ entry }) => entry.name));
        for (const { entry } of changes) expect(entry.version).to.equal('3');
        if (next === undefined) break;
        after = next;
      }
      expect(names).to.deep.equal(NAMES);
    });
  }

  it('returns a short page after a few searches if changes cancel each other out', async () => {
    const { run, asked } = searching(records(NAMES, true));
    const { changes, next } = await readChanges(run, query(2));
    expect(changes).to.deep.equal([]);
    expect(asked).to.have.length(4);
    expect(next).to.equal('name-03');
  });

  it('returns no next after the last change', async () => {
    const { run } = searching(records(NAMES.slice(0, 3), false));
    expect((await readChanges(run, query(3))).next).to.equal(undefined);
  });
});
