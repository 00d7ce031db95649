import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { pino } from 'pino';
import type { SearchPool } from '../../../src/elasticsearch/search-pool.js';
import { BadRows } from '../../../src/lists/fetch/dataset-error.js';
import { Weights } from '../../../src/lists/weights.js';
import { countKeptWeights } from '../../../src/rebuild/kept-weights.js';
import { encodeEntry, entryMembers } from '../../../src/snapshot/package-document.js';
import type { FoundIndex } from '../../../src/snapshot/snapshot.js';
import { streamOf } from '../../support/batches.js';
import { hashedPackages } from '../../support/hashed-packages.js';
import { STEP } from '../../support/step.js';

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

describe('Weights that are kept', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);

  for (const [count, pages] of [[2, 1], [98, 1], [100, 2], [2098, 2], [2100, 3]] as const) {
    it(`are counted on ${pages} pages of ${count} names`, async () => {
      const pool = poolOf(names(count));
      const weights = await weightsOf([...names(count / 2), 'other']);
      expect(await countKeptWeights(pool, SERVED, weights, STEP)).to.deep.equal({ had: count, have: count / 2 });
      expect(pool.bodies).to.have.length(pages);
      for (const body of pool.bodies) expect(body).to.contain('{"range":{"weight":{"gt":0}}}');
    });
  } // prettier-ignore

  it('are those of names that the dataset still has', async () => {
    const weights = await weightsOf(names(4), names(1));
    const counts = await countKeptWeights(poolOf(names(4)), SERVED, weights, STEP);
    expect(counts).to.deep.equal({ had: 4, have: 1 });
  });

  it('are not counted if no names had one or the old ones cannot be read', async () => {
    const weights = await weightsOf(['other']);
    const without = { ...SERVED, meta: { has_weights: false } } as unknown as FoundIndex;
    for (const served of [undefined, without, { ...SERVED, meta: undefined }]) {
      const pool = poolOf(names(4));
      expect(await countKeptWeights(pool, served, weights, STEP)).to.equal(undefined);
      expect(pool.bodies).to.deep.equal([]);
    }
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const broken = { search: () => Promise.reject(new Error('broken')) } as unknown as SearchPool;
    expect(await countKeptWeights(broken, SERVED, weights, { ...STEP, log })).to.equal(undefined);
    expect(lines).to.have.length(1);
    expect(lines[0]).to.contain('could not be read and compared').and.contain('broken');
  });

  it('ends when the rebuild is stopped', async () => {
    const stop = new AbortController();
    stop.abort(new Error('stopped'));
    const broken = { search: () => Promise.reject(new Error('broken')) } as unknown as SearchPool;
    const options = { ...STEP, signal: stop.signal };
    await rejects(countKeptWeights(broken, SERVED, await weightsOf(['a']), options), /stopped/);
  });
});
