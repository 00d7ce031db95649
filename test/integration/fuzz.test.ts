import { expect } from 'chai';
import fc from 'fast-check';
import { bundledPackages } from '../support/datasets.js';
import { contractOf } from '../support/openapi-contract.js';
import { searchForSecrets } from '../support/secret-scanner.js';
import { useService } from '../support/service.js';

const REQUESTS = 1500;

const PATHS = ['/ping', '/health', '/ready', '/stats', '/browse', '/search', '/debug-ip', '/get-bypass', '/rebuild', '/openapi.json', '/', '/docs', '/page/page.css']; // prettier-ignore
const PARAMETERS = ['q', 'limit', 'page', 'secret', 'force', '__proto__', 'q[]', ''];

/** Any text that a URL can contain, well or badly encoded. */
const encoded = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 60 }).map(encodeURIComponent),
  fc.array(fc.nat(255), { maxLength: 20 }).map((bytes) => bytes.map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')), // prettier-ignore
  fc.stringMatching(/^[%&=;+?#a-f0-9[\]]{0,40}$/),
  fc.constantFrom('lib', 're', 'redis', '10', '0', '-1', '1e3', '500', '501', '99999999999999999999', 'true'),
);

const path = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...PATHS) },
  { weight: 1, arbitrary: encoded.map((text) => `/${text}`) },
);

const query = fc
  .array(fc.tuple(fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...PARAMETERS) }, encoded), encoded), {
    maxLength: 4,
  })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join('&'));

/** Values of headers. */
const value = fc.oneof(
  fc.stringMatching(/^[\x20-\x7e]{0,60}$/),
  fc.stringMatching(/^[\x80-\xff]{0,20}$/),
  fc.ipV4(),
  fc.ipV6(),
  fc.array(fc.ipV4(), { maxLength: 5 }).map((ips) => ips.join(', ')),
  fc.constantFrom('*', 'W/"a"', 'gzip;q=0', 'br, gzip', 'identity;q=0, *;q=0', 'bytes=0-1', 'null'),
  fc
    .tuple(fc.nat(2_000_000_000), fc.base64String({ maxLength: 60 }))
    .map(([time, signature]) => `${time}:${signature}`),
);

const HEADERS = ['X-Forwarded-For', 'X-Bypass-Token', 'If-None-Match', 'If-Modified-Since', 'Accept-Encoding', 'Accept', 'Range', 'Origin', 'Cookie', 'Content-Type', 'Forwarded', 'X-Anything']; // prettier-ignore

const anyRequest = fc.record({
  method: fc.oneof(
    { weight: 8, arbitrary: fc.constant('GET') },
    { weight: 2, arbitrary: fc.constantFrom('HEAD', 'OPTIONS', 'POST', 'DELETE') },
  ),
  address: fc.tuple(path, query).map(([before, after]) => (after === '' ? before : `${before}?${after}`)),
  headers: fc.dictionary(fc.constantFrom(...HEADERS), value, { maxKeys: 4 }),
});

describe('Thousands of random requests', function () {
  this.timeout(180_000);
  const suite = useService(
    () => bundledPackages().slice(0, 600),
    () => ({ RATE_LIMIT_POINTS: '400', RATE_LIMIT_WINDOW_SECONDS: '2', TRUSTED_PROXIES: '127.0.0.1' }),
  );

  /** Like `service.get`, but also for responses that are not JSON. */
  async function send(address: string, init: RequestInit) {
    const response = await fetch(suite.service.url + address, init);
    const { status, headers } = response;
    const text = await response.text();
    searchForSecrets('responses', text);
    const isJson = text !== '' && headers.get('Content-Type')?.includes('json');
    return { status, headers, text, body: isJson ? (JSON.parse(text) as unknown) : undefined };
  }

  it('get the documented responses, never 500', async () => {
    const promises = contractOf((await suite.service.get('/openapi.json')).text);
    const statuses = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(anyRequest, async ({ method, address, headers }) => {
        const answer = await send(address, { method, headers });
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        expect(answer.status, `${method} ${address}`).not.to.equal(500);
        promises.check(method, address, answer);
      }),
      { numRuns: REQUESTS },
    );
    console.log(`      ${REQUESTS} requests by status:`, Object.fromEntries([...statuses].sort()));
    expect([...statuses.keys()]).to.include.members([200, 400, 403, 404, 405]);
    expect((await suite.service.get('/health')).status).to.equal(200);
  });
});
