import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { pino } from 'pino';
import type { SearchPool } from '../../../../src/elasticsearch/search-pool.js';
import { BadRows, DatasetError } from '../../../../src/lists/fetch/dataset-error.js';
import { Weights } from '../../../../src/lists/weights.js';
import { assertNotShrunk, assertWeightsKept } from '../../../../src/rebuild/steps/losses.js';
import { encodeEntry, entryMembers } from '../../../../src/snapshot/package-document.js';
import type { FoundIndex } from '../../../../src/snapshot/snapshot.js';
import { streamOf } from '../../../support/batches.js';
import { hashedPackages } from '../../../support/hashed-packages.js';
import { STEP } from '../../../support/step.js';

const SERVED = { index: 'old', meta: { has_weights: true } } as unknown as FoundIndex;

/** A pool that returns pages of the names that had a weight, of the requested sizes. */
function poolOf(names: readonly string[]): SearchPool & { bodies: string[] } {
  const bodies: string[] = [];
  let sent = 0;
  const search = (_index: string, [body]: [{ size: number }]) => {
    bodies.push(JSON.stringify(body));
    const { size } = body;
    const entries = names
      .slice(sent, (sent += size))
      .map((name) =>
        encodeEntry(entryMembers({ no: 1, name, version: '1', url: 'https://a.example/', weight: 1 })),
      );
    return Promise.resolve([{ entries, exact: 0 }]);
  };
  return { search, bodies } as unknown as SearchPool & { bodies: string[] };
}

/** Weights of 1 for names, of which the dataset has those that are `known`. */
async function weightsOf(names: readonly string[], known = names): Promise<Weights> {
  const csv = Buffer.from(`name,weight\n${names.map((name) => `${name},1\n`).join('')}`);
  const columns = { name: 'name', weight: 'weight' };
  const packages = await hashedPackages(known);
  return Weights.read(streamOf([csv]), columns, packages, new BadRows(0, STEP.log));
}

describe('assertWeightsKept', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);

  it('accepts at least half of the names that had a weight, on any number of pages', async () => {
    for (const [count, pages] of [
      [2, 1],
      [98, 1],
      [100, 2],
      [2098, 2],
      [2100, 3],
    ] as const) {
      const half = names(count / 2);
      const pool = poolOf(names(count));
      await assertWeightsKept(pool, SERVED, await weightsOf([...half, 'other']), STEP);
      expect(pool.bodies).to.have.length(pages);
      for (const body of pool.bodies) expect(body).to.contain('{"range":{"weight":{"gt":0}}}');
      await rejects(
        assertWeightsKept(poolOf(names(count)), SERVED, await weightsOf(['x', ...half.slice(1)]), STEP),
        {
          name: 'DatasetError',
          message: new RegExp(
            `^WEIGHTS_URL: of ${count} names that had a weight, ${count / 2 - 1} have one now`,
          ),
        },
      );
    }
  });

  it('ignores weights of names that the dataset no longer has', async () => {
    const weights = await weightsOf(names(4), names(1));
    await rejects(assertWeightsKept(poolOf(names(4)), SERVED, weights, STEP), /of 4 names .* 1 have one now/);
  });

  it('accepts all weights if no names had one, or the old ones cannot be read', async () => {
    const weights = await weightsOf(['other']);
    const without = { ...SERVED, meta: { has_weights: false } } as unknown as FoundIndex;
    for (const served of [undefined, without, { ...SERVED, meta: undefined }]) {
      const pool = poolOf(names(4));
      await assertWeightsKept(pool, served, weights, STEP);
      expect(pool.bodies).to.deep.equal([]);
    }
    await assertWeightsKept(poolOf([]), SERVED, weights, STEP);

    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const broken = { search: () => Promise.reject(new Error('broken')) } as unknown as SearchPool;
    await assertWeightsKept(broken, SERVED, weights, { ...STEP, log });
    expect(lines).to.have.length(1);
    expect(lines[0]).to.contain('could not be read and compared').and.contain('broken');
  });

  it('ends when the rebuild is stopped', async () => {
    const stop = new AbortController();
    stop.abort(new Error('stopped'));
    const broken = { search: () => Promise.reject(new Error('broken')) } as unknown as SearchPool;
    const options = { ...STEP, signal: stop.signal };
    await rejects(assertWeightsKept(broken, SERVED, await weightsOf(['a']), options), /stopped/);
  });
});

describe('assertNotShrunk', () => {
  it('accepts any first or larger snapshot, any size at 100 percent', () => {
    assertNotShrunk(1, undefined, 0);
    for (const total of [1000, 1001, 1_000_000]) assertNotShrunk(total, 1000, 0);
    assertNotShrunk(1, 1_000_000, 100);
  });

  for (const [previous, percent, smallest] of [
    [1000, 10, 900],
    [1000, 0, 1000],
    [3000, 50, 1500],
    [150, 18, 123],
    [1, 99, 1],
  ] as const) {
    it(`accepts at least ${smallest} packages after ${previous} at ${percent} percent`, () => {
      assertNotShrunk(smallest, previous, percent);
      expect(() => assertNotShrunk(smallest - 1, previous, percent)).to.throw(
        DatasetError,
        `the snapshot has ${smallest - 1} packages, the previous one ${previous}: smaller by more than ${percent} %` +
          ' (REBUILD_MAX_SHRINK_PERCENT); accept it with force=true or --force',
      );
    });
  }
});
