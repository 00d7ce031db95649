import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createRebuildClient } from '../../../src/clients/elasticsearch.js';
import { createLogger } from '../../../src/log.js';
import { retry } from '../../../src/rebuild/retry.js';

describe('An aborted request of a rebuild', () => {
  const server: Server = createServer(() => undefined);
  let url: string;
  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  it('ends at once, even if Elasticsearch does not respond', async () => {
    const client = createRebuildClient({ nodes: [url], apiKey: undefined });
    const stopping = new AbortController();
    const request = retry((signal) => client.indices.refresh({ index: 'any' }, { signal }), {
      signal: stopping.signal,
      log: createLogger('silent', false),
    });
    await once(server, 'request');
    const began = performance.now();
    stopping.abort();
    expect(await request.catch(() => 'failed')).to.equal('failed');
    expect(performance.now() - began).to.be.lessThan(200);
    await client.close();
  });
});
