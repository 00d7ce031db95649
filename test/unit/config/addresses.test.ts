import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { createReadClient } from '../../../src/elasticsearch/elasticsearch.js';
import { SearchPool } from '../../../src/elasticsearch/search-pool.js';
import { ConfigError, readConfig, type Config } from '../../../src/config/config.js';

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

/** Calls `use` with the configuration of each random text that it accepts, of which there must be several. */
async function checkAccepted(
  variable: string,
  starts: string[],
  use: (config: Config, text: string) => void | Promise<void>,
): Promise<void> {
  let taken = 0;
  const property = fc.asyncProperty(urlLike(...starts), async (text) => {
    const config = accepted({ [variable]: text });
    if (config === undefined) return;
    taken++;
    await use(config, text);
  });
  await fc.assert(property, { numRuns: 300 });
  expect(taken).to.be.greaterThan(15);
}

describe('A URL that the configuration accepts', function () {
  this.timeout(60_000);

  it('works with the Elasticsearch clients', () =>
    checkAccepted('ELASTICSEARCH_URL', ['http://', 'https://', 'http://u:p@h', 'x'], async (config) => {
      const access = { nodes: config.elasticsearch.nodes, apiKey: undefined };
      await Promise.all([createReadClient(access).close(), new SearchPool(access).close()]);
    }));

  it('works with the Redis client, which keeps the given options', () =>
    checkAccepted('REDIS_URL', ['redis://', 'rediss://', 'redis://u:p@h', 'x'], ({ redisUrl = '' }) => {
      const { options } = new Redis(redisUrl, { lazyConnect: true, connectTimeout: 7 });
      expect(options).to.include({ lazyConnect: true, connectTimeout: 7 });
      expect(options.port).to.be.within(1, 65535);
      expect(options.db).to.be.at.least(0);
      expect(options.tls !== undefined, 'TLS').to.equal(redisUrl.startsWith('rediss:'));
    }));

  it('names a file or a host', () =>
    checkAccepted(
      'DATASET_URL',
      ['http://', 'file:///', 'https://u:p@h', 'x'],
      ({ dataset: { urls } }, text) => {
        const [url] = urls;
        if (text.startsWith('file:')) expect(fileURLToPath(url)).not.to.contain('\0');
        else expect(new URL(url).hostname).not.to.equal('');
      },
    ));
});
