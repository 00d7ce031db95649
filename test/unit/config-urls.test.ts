import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { createReadClient, createRebuildClient } from '../../src/clients/elasticsearch.js';
import { SearchPool } from '../../src/clients/search-pool.js';
import { ConfigError, readConfig } from '../../src/config.js';

const NODE = 'http://127.0.0.1:9200';

/** Pieces of URLs, valid and invalid. */
const piece = fc.constantFrom(
  'http://', 'https://', 'redis://', 'rediss://', 'file:///', 'http:', 'u', 'p', 'h', ':', ':9200', ':0', ':99999', ':x', '@', '/', '/0', '/x',
  '?', '?family=6', '#', '%zz', '%2F', '%41', '%', '%00', '[::1]', '[', ' ', '\n', '\t', ',', '{name}', '..', '\\', 'é', '\u0000',
); // prettier-ignore
const urlLike = (...starts: string[]) =>
  fc
    .tuple(fc.constantFrom(...starts), fc.array(piece, { maxLength: 5 }))
    .map(([start, rest]) => start + rest.join(''));

/** The configuration, or undefined if it is rejected in one line that does not repeat the value. */
function accepted(env: Record<string, string>) {
  try {
    return readConfig({ ELASTICSEARCH_URL: NODE, ...env });
  } catch (error) {
    expect(error).to.be.instanceOf(ConfigError);
    expect((error as Error).message).to.match(/^[A-Z_]+ (must [^\n]+|is required, such as \S+)$/);
    return undefined;
  }
}

describe('A URL that the configuration accepts', function () {
  this.timeout(60_000);

  it('works with the Elasticsearch clients', async () => {
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(urlLike('http://', 'https://', 'http://u:p@h', 'x'), async (text) => {
        const config = accepted({ ELASTICSEARCH_URL: text });
        if (config === undefined) return;
        taken++;
        const access = { nodes: config.elasticsearch.nodes, apiKey: undefined };
        const clients = [createReadClient(access), createRebuildClient(access), new SearchPool(access)];
        await Promise.all(clients.map((client) => client.close()));
      }),
      { numRuns: 3000 },
    );
    expect(taken).to.be.greaterThan(50);
  });

  it('works with the Redis client, which keeps the given options', () => {
    let taken = 0;
    fc.assert(
      fc.property(urlLike('redis://', 'rediss://', 'redis://u:p@h', 'x'), (text) => {
        const url = accepted({ REDIS_URL: text })?.redisUrl;
        if (url === undefined) return;
        taken++;
        const { options } = new Redis(url, { lazyConnect: true, connectTimeout: 7 });
        expect(options).to.include({ lazyConnect: true, connectTimeout: 7 });
        expect(options.port).to.be.within(1, 65535);
        expect(options.db).to.be.at.least(0);
        expect(options.tls !== undefined, 'TLS').to.equal(url.startsWith('rediss:'));
      }),
      { numRuns: 3000 },
    );
    expect(taken).to.be.greaterThan(50);
  });

  it('names a file or a host', () => {
    let taken = 0;
    fc.assert(
      fc.property(urlLike('http://', 'file:///', 'https://u:p@h', 'x'), (text) => {
        const url = accepted({ DATASET_URL: text })?.dataset.url;
        if (url === undefined) return;
        taken++;
        if (text.startsWith('file:')) expect(fileURLToPath(url)).not.to.contain('\0');
        else expect(new URL(url).hostname).not.to.equal('');
      }),
      { numRuns: 3000 },
    );
    expect(taken).to.be.greaterThan(50);
  });
});
