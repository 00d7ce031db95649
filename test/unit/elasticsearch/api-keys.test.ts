import type { RequestListener } from 'node:http';
import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { validKeys } from '../../../src/elasticsearch/api-keys.js';
import { createAdministratorClient } from '../../../src/elasticsearch/elasticsearch.js';
import { withNodes } from '../../support/node-servers.js';

describe('validKeys', () => {
  /** Asks a node that always responds with this status, for at most 0.3 seconds. @returns the number of requests. */
  async function ask(status: number, failure: object): Promise<number> {
    let requests = 0;
    const refuses: RequestListener = (_request, response) => {
      requests++;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end('{"error":{"type":"unavailable_shards_exception","reason":"for a test"}}');
    };
    await withNodes([refuses], async (nodes) => {
      const client = createAdministratorClient(nodes, { username: 'admin', password: 'change-me' });
      await rejects(validKeys(client, ['a'], 300), failure);
      await client.close();
    });
    return requests;
  }

  it('waits while Elasticsearch is unavailable, not longer than the timeout', async () => {
    const message = 'Elasticsearch cannot list API keys: it responded with 503 for 0.3 seconds';
    expect(await ask(503, { name: 'Error', message })).to.be.greaterThan(1);
  });

  it('fails at once if Elasticsearch refuses', async () => {
    for (const statusCode of [400, 403, 500])
      expect(await ask(statusCode, { name: 'ResponseError', statusCode })).to.equal(1);
  });
});
