import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import type { SearchPool } from '../../../src/elasticsearch/search-pool.js';
import { createIndex } from '../../../src/publish/create.js';
import { flip } from '../../../src/publish/flip.js';
import { load } from '../../../src/publish/load.js';
import { merge } from '../../../src/publish/merge.js';
import { findExisting } from '../../../src/publish/publish.js';
import { recordChanges } from '../../../src/publish/record-changes.js';
import { replicate } from '../../../src/publish/replicate.js';
import { findIndex } from '../../../src/snapshot/snapshot.js';
import { streamOf } from '../../support/batches.js';
import { interceptedClient } from '../../support/intercepted-client.js';
import { metaWith } from '../../support/snapshot-meta.js';
import { STEP } from '../../support/step.js';

const ALIAS = 'registry-packages-v2';
const [OLD, NEW] = [`${ALIAS}-20260101t000000z-00000000`, `${ALIAS}-20260102t000000z-00000000`] as const;
const meta = metaWith(0);
const created = { index: NEW, meta };
const document = { id: '', source: '{}' };
const pool = { search: () => Promise.resolve([{ entries: [], exact: 0 }]) } as unknown as SearchPool;
const _shards = { failed: 0, successful: 1 };

/** What Elasticsearch responds to the requests of a rebuild. */
function responder() {
  const seen = new Set<string>();
  return (path: string): object => {
    const api = /_\w+$/.exec(path)?.[0] ?? '';
    const segment = { num_docs: 0, committed: true, search: seen.has('_forcemerge') };
    const isCopied = seen.has('_shard_stores');
    seen.add(api);
    if (api === '_count') return { count: 0, _shards };
    if (api === '_segments')
      return { _shards, indices: { [NEW]: { shards: { 0: [{ segments: [segment] }] } } } };
    if (api === '_shard_stores') return { indices: isCopied ? {} : { [NEW]: {} } };
    const name = /-\d{8}t.*z-\w{8}$/.test(path) ? path.slice(1) : OLD;
    return { [name]: { mappings: { _meta: meta }, settings: { index: { creation_date: '1' } } } };
  };
}

type Step = typeof STEP & { onBytes: () => void; onRows: () => void };

/** Stops a step during each of its requests, which get no response. @returns those that it still waits for. */
async function stopDuringEach(run: (client: Client, step: Step) => Promise<unknown>): Promise<string[]> {
  const late: string[] = [];
  for (let n = 0; ; n++) {
    const held: string[] = [];
    const stopping = new AbortController();
    const respond = responder();
    let sent = 0;
    const client = interceptedClient(({ method, path, signal }) => {
      if (sent++ !== n) return respond(path);
      held.push(`${method} ${path}`);
      setImmediate(() => stopping.abort());
      return new Promise((_, reject) =>
        signal?.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    });
    const step = { ...STEP, signal: stopping.signal, onBytes: () => undefined, onRows: () => undefined };
    const stopped = run(client, step).catch(() => 'stopped');
    const outcome = await Promise.race([stopped, pause(100, 'late')]);
    if (held.length === 0) return late;
    if (outcome !== 'stopped') late.push(...held);
  }
}

describe('A step that is stopped', () => {
  const context = (client: Client) => ({ client, pool, exportPool: pool, alias: ALIAS, log: STEP.log });
  const record = async (client: Client, step: Step) => {
    const served = await findIndex(client, OLD, step);
    return recordChanges(context(client), served, created, { ...step, replicas: '1', retention: 1 });
  };

  for (const [what, run] of [
    ['the search for existing indices', (client, { signal }) => findExisting(context(client), signal)],
    ['a load', (client, step) => load(client, NEW, streamOf([[document]]), { inFlight: 1, ...step })],
    ['a merge', (client, step) => merge(client, NEW, 0, step)],
    ['a copy', (client, step) => replicate(client, NEW, '1', step)],
  ] as [string, (client: Client, step: Step) => Promise<unknown>][]) {
    it(`ends at once: ${what}`, async () => expect(await stopDuringEach(run)).to.deep.equal([]));
  }

  it('waits for the response to the creation of an index, which can then be deleted', async () => {
    const create = (client: Client, step: Step) => createIndex(client, 'packages', created, step);
    expect(await stopDuringEach(create)).to.deep.equal([`PUT /${NEW}`]);
    const changes = `${ALIAS}-changes-${NEW.slice(ALIAS.length + 1)}`;
    expect(await stopDuringEach(record)).to.deep.equal([`PUT /${changes}`]);
  });

  it('waits for the response to a flip, which says what is served', async () => {
    const serve = (client: Client, step: Step) => flip(client, ALIAS, { from: OLD, to: NEW }, step);
    expect(await stopDuringEach(serve)).to.deep.equal(['POST /_aliases']);
  });
});
