import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { checkElasticsearch } from '../../../src/elasticsearch/connection-check.js';
import { createAdministratorClient, createReadClient } from '../../../src/elasticsearch/elasticsearch.js';
import { ElasticsearchUnavailableError } from '../../../src/elasticsearch/elasticsearch-errors.js';
import { findIndex } from '../../../src/snapshot/snapshot.js';
import { withAddresses } from '../../support/addresses.js';
import { withNodes } from '../../support/node-servers.js';
import { KEY_LOOKUP_FAILURE } from '../../support/key-lookup-failure.js';

const answers: RequestListener = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end('{}');
};

describe('The client of an administrator', () => {
  it('sends the credentials it was given, not those in the URL of a node', async () => {
    let headers: IncomingHttpHeaders = {};
    const node: RequestListener = (request, response) => {
      ({ headers } = request);
      answers(request, response);
    };
    await withNodes([node], async ([url = '']) => {
      const client = createAdministratorClient([url.replace('//', '//reader:change-me@')], {
        username: 'admin',
        password: 'change-me-too',
      });
      await client.info().finally(() => client.close());
    });
    expect(headers.authorization).to.equal(`Basic ${Buffer.from('admin:change-me-too').toString('base64')}`);
  });
});

describe('The client for reads', () => {
  /** Sends four requests, one after the other, to nodes of which the first hangs. */
  async function read(hanging: readonly boolean[]): Promise<void> {
    const requests = hanging.map(() => 0);
    const nodes = hanging.map((hangs, node): RequestListener => (request, response) => {
      requests[node] = (requests[node] ?? 0) + 1;
      if (!hangs) answers(request, response);
    });
    await withNodes(nodes, async (urls) => {
      const client = createReadClient({ nodes: urls, apiKey: undefined });
      for (let i = 0; i < 4; i++) {
        const began = performance.now();
        await client.info({}, { retryBackoff: () => 0 });
        // Two seconds, and one in which the processor may be busy with other tests.
        expect(performance.now() - began).to.be.lessThan(2000 + 1000);
      }
      await client.close();
    });
    expect(requests[0]).to.equal(1);
    expect(requests.reduce((sum, n) => sum + n)).to.equal(5);
  }

  // The client measures its timeouts in steps of half a second, so that shorter ones would not make this faster.
  it('asks a node that hangs once, whether there are two or three nodes', async () => {
    const cases = [
      [true, false],
      [true, false, false],
    ];
    await Promise.all(cases.map(read));
  });

  it('names a node none of whose addresses responds, without its credentials', async () => {
    const client = createReadClient({
      nodes: ['http://reader:change-me@elasticsearch.example:1'],
      apiKey: undefined,
    });
    const message = 'connection failed (http://elasticsearch.example:1/)';
    const request = () => client.info({}, { retryBackoff: () => 0 });
    await rejects(withAddresses(['127.0.0.1', '127.0.0.2'], request), { name: 'ConnectionError', message });
    await client.close();
  });

  it('takes errors that it describes for responses of Elasticsearch: some have no product header', async () => {
    for (const [status, type] of [
      [401, 'security_exception'],
      [403, 'security_exception'],
      [403, 'cluster_block_exception'],
    ] as const) {
      const refuses: RequestListener = (_request, response) => {
        response.removeHeader('X-Elastic-Product');
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(`{"error":{"type":"${type}","reason":"for a test"}}`);
      };
      await withNodes([refuses], async (nodes) => {
        const client = createReadClient({ nodes, apiKey: 'key' });
        await rejects(client.info(), { name: 'ResponseError', statusCode: status });
        await client.close();
      });
    }
  });

  it('asks another node if one cannot look up the API key', async () => {
    const starts: RequestListener = (_request, response) => {
      response.writeHead(401, { 'content-type': 'application/json' }).end(KEY_LOOKUP_FAILURE);
    };
    await withNodes([starts, answers], async (nodes) => {
      const client = createReadClient({ nodes, apiKey: 'key' });
      for (let i = 0; i < 3; i++) expect(await client.info()).to.deep.equal({});
      await client.close();
    });
    await withNodes([starts], async (nodes) => {
      const client = createReadClient({ nodes, apiKey: 'key' });
      await rejects(client.info(), { name: 'ConnectionError' });
      await client.close();
      await rejects(checkElasticsearch({ nodes, apiKey: 'key' }), {
        message:
          'Elasticsearch does not respond at ELASTICSEARCH_URL (Elasticsearch cannot look up API keys at the moment): start it, or correct the address',
      });
    });
  });

  it('asks another node if something other than Elasticsearch responds', async () => {
    for (const status of [200, 302, 400, 401, 403, 404, 500]) {
      const proxy: RequestListener = (_request, response) => {
        response.removeHeader('X-Elastic-Product');
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end('{"error":{"type":"index_not_found_exception"}}');
      };
      await withNodes([proxy, answers], async (urls) => {
        const client = createReadClient({ nodes: urls, apiKey: undefined });
        for (let i = 0; i < 3; i++)
          expect(await client.info({}, { retryBackoff: () => 0 })).to.deep.equal({});
        await client.close();
      });
      await withNodes([proxy], async (urls) => {
        const client = createReadClient({ nodes: urls, apiKey: undefined });
        const failure = await findIndex(client, 'alias').catch((error: unknown) => error);
        expect(failure, 'not an absent alias').to.be.instanceOf(ElasticsearchUnavailableError);
        await client.close();
      });
    }
  });
});
