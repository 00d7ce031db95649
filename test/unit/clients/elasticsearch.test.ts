import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createAdministratorClient, createReadClient } from '../../../src/clients/elasticsearch.js';

describe('The client of an administrator', () => {
  it('sends the credentials it was given, not those in the URL of a node', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' });
      response.end('{}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const requested = once(server, 'request');
    const { port } = server.address() as AddressInfo;
    const client = createAdministratorClient([`http://reader:change-me@127.0.0.1:${port}`], {
      username: 'admin',
      password: 'change-me-too',
    });
    try {
      await client.info();
      const [{ headers }] = (await requested) as [{ headers: Record<string, string> }];
      const credentials = Buffer.from('admin:change-me-too').toString('base64');
      expect(headers['authorization']).to.equal(`Basic ${credentials}`);
    } finally {
      await client.close();
      server.close();
    }
  });
});

describe('The client for reads', function () {
  // A processor that is busy with other tests may add more than the 0.8 s that the timeouts leave, but not each time.
  this.retries(2);

  const answers: RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' });
    response.end('{}');
  };
  const hangs: RequestListener = () => undefined;

  /** Sends requests to nodes with these listeners, one after the other. @returns the longest time in milliseconds. */
  async function longestOf(listeners: readonly RequestListener[], requests: number): Promise<number> {
    const servers = listeners.map((listener) => createServer(listener).listen(0, '127.0.0.1'));
    await Promise.all(servers.map((server) => once(server, 'listening')));
    const nodes = servers.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const client = createReadClient({ nodes, apiKey: undefined });
    let longest = 0;
    try {
      for (let i = 0; i < requests; i++) {
        const began = performance.now();
        await client.info({}, { retryBackoff: () => 0 });
        longest = Math.max(longest, performance.now() - began);
      }
    } finally {
      await client.close();
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    }
    return longest;
  }

  it('gets a response within two seconds if one of two nodes hangs', async () => {
    expect(await longestOf([hangs, answers], 4)).to.be.lessThan(2000);
  });

  it('gets a response within two seconds if two of three nodes hang, whichever they are', async () => {
    for (const nodes of [
      [answers, hangs, hangs],
      [hangs, answers, hangs],
      [hangs, hangs, answers],
    ]) {
      expect(await longestOf(nodes, 4)).to.be.lessThan(2000);
    }
  });
});
