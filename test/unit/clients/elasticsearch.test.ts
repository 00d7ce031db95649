import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createAdministratorClient } from '../../../src/clients/elasticsearch.js';

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
