import { rejects } from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { createRebuildClient } from '../../../src/elasticsearch/elasticsearch.js';
import { createLogger } from '../../../src/util/log.js';
import { createIndex } from '../../../src/publish/create.js';
import type { RetryOptions } from '../../../src/publish/retry.js';
import { withNodes } from '../../support/node-servers.js';
import { STEP } from '../../support/step.js';

const JSON_TYPE = { 'Content-Type': 'application/json' };

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
      await createIndex(client, 'changes', { index }, step).finally(() => client.close());
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
