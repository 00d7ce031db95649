import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { replicate } from '../../../src/publish/replicate.js';
import { interceptedClient } from '../../support/intercepted-client.js';
import { STEP } from '../../support/step.js';

/** Copies an index: `copied[n]` bytes of 100 at poll n. Another shard is from the local disk. */
async function copy(copied: number[], replicas = '1') {
  const progress: number[][] = [];
  let settings: unknown;
  const client = interceptedClient(({ path, body }) => {
    const bytes = copied[progress.length];
    const index = (total: number) => ({ size: { recovered_in_bytes: bytes, total_in_bytes: total } });
    const shards = [{ type: 'PEER', index: index(100) }, { type: 'EMPTY_STORE', index: index(5) }]; // prettier-ignore
    if (path === '/packages/_settings') settings = body;
    if (path === '/packages/_shard_stores') return { indices: bytes === undefined ? {} : { packages: {} } };
    if (path === '/packages/_recovery') return { packages: { shards } };
    return {};
  });
  const onBytes = (...bytes: number[]) => progress.push(bytes);
  await replicate(client, 'packages', replicas, { ...STEP, stallMs: 40, onBytes });
  return { settings, progress };
}

describe('replicate', () => {
  for (const [replicas, copies] of [
    ['0', { auto_expand_replicas: 'false', number_of_replicas: 0 }],
    ['2', { auto_expand_replicas: 'false', number_of_replicas: 2 }],
    ['0-all', { auto_expand_replicas: '0-all' }],
  ] as const) {
    it(`sets the copies of INDEX_REPLICAS=${replicas} with the usual refresh interval`, async () => {
      expect((await copy([], replicas)).settings).to.deep.equal({ ...copies, refresh_interval: '1s' });
    });
  }

  it('reports the bytes of copies from other nodes, which may begin anew', async () => {
    expect((await copy([10, 20])).progress).to.deep.equal([[10, 100], [20, 100]]); // prettier-ignore
  });

  it('fails if a copy makes no progress, whatever it repeats', () =>
    rejects(copy([10, 5, 10]), {
      message: 'copying the index (INDEX_REPLICAS=1) made no progress for 0.04 seconds',
    }));
});
