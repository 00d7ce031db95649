import { rejects } from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { createRebuildClient } from '../../../../src/elasticsearch/elasticsearch.js';
import { createLogger } from '../../../../src/util/log.js';
import { createIndex } from '../../../../src/rebuild/steps/create.js';
import { waitForCopies } from '../../../../src/rebuild/steps/replicate.js';
import type { RetryOptions } from '../../../../src/rebuild/retry.js';
import { withNodes } from '../../../support/node-servers.js';
import { STEP } from '../../../support/step.js';

const JSON_TYPE = { 'Content-Type': 'application/json' };

const STORES = {
  indices: { packages: { shards: { 0: { stores: [{ store_exception: { type: 'corrupt_index' } }] } } } },
};

describe('createIndex', () => {
  const index = 'registry-packages-20260101t000000z-00000000';

  /** Creates an index on a server that responds with `settings` to later requests. */
  function create(onCreate: () => Promise<unknown>, settings: object, step: RetryOptions): Promise<void> {
    const node: RequestListener = ({ method }, response) => {
      const end = (body: object) => response.writeHead(200, JSON_TYPE).end(JSON.stringify(body));
      if (method === 'GET') end({ [index]: { settings } });
      else void onCreate().then(() => end({ acknowledged: true }));
    };
    return withNodes([node], async (nodes) => {
      const client = createRebuildClient({ nodes, apiKey: undefined });
      await createIndex(client, 'changes', { index, shards: 1 }, step).finally(() => client.close());
    });
  }

  // The Elasticsearch of the tests has no such policies.
  it('warns of a lifecycle policy from an index template', async () => {
    let logged = '';
    const log = createLogger('warn', { destination: { write: (line) => (logged += line) } });
    const settings = { index: { lifecycle: { name: 'thirty-days' } } };
    await create(() => Promise.resolve(), settings, { ...STEP, log });
    expect(JSON.parse(logged)).to.include({ index, policy: 'thirty-days' });
  });

  it('ends after the response to its request when it is stopped: the index can then be deleted', async () => {
    const stopping = new AbortController();
    let isCreated = false;
    const creation = async () => {
      stopping.abort();
      await pause(100);
      isCreated = true;
    };
    await rejects(create(creation, {}, { ...STEP, signal: stopping.signal }));
    expect(isCreated).to.equal(true);
  });
});

describe('waitForCopies', () => {
  interface ReportedCopy {
    start: number;
    bytes: number;
  }

  /** Waits for copies of an index with one shard. `copiesAt(n)` are those that Elasticsearch reports at poll n; none if all exist. */
  function wait(copiesAt: (poll: number) => ReportedCopy[], stallMs: number): Promise<void> {
    let polls = 0;
    const node: RequestListener = ({ url = '' }, response) => {
      const shards = copiesAt(polls).map(({ start, bytes }) => {
        const size = { recovered_in_bytes: bytes, total_in_bytes: 1000 };
        return { id: 0, type: 'PEER', stage: 'INDEX', start_time_in_millis: start, translog: { recovered: 0 }, index: { size } }; // prettier-ignore
      });
      if (url.includes('_recovery')) polls++;
      const missing = shards.length === 0 ? { indices: {} } : STORES;
      const body = url.includes('_recovery') ? { packages: { shards } } : missing;
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body));
    };
    return withNodes([node], async (nodes) => {
      const client = createRebuildClient({ nodes, apiKey: undefined });
      const options = { ...STEP, stallMs, onBytes: () => undefined };
      await waitForCopies(client, 'packages', '1', options).finally(() => client.close());
    });
  }

  it('fails if a copy begins anew for the third time, with the reason', async () => {
    const message = 'a copy of shard 0 failed 3 times: corrupt_index';
    await rejects(
      wait((poll) => [{ start: poll, bytes: 10 }], 10_000),
      { name: 'Error', message },
    );
  });

  it('lets each of two copies begin anew twice', async () => {
    const restarted = (poll: number) => [
      { start: 2 * poll, bytes: 10 },
      { start: 2 * poll + 1, bytes: 10 },
    ];
    await wait((poll) => (poll < 3 ? restarted(poll) : []), 10_000);
  });

  it('fails if a copy makes no progress, whatever it repeats', async () => {
    await rejects(
      wait((poll) => [{ start: 1, bytes: poll % 2 }], 400),
      { name: 'StalledError' },
    );
  });
});
