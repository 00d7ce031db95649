import { Validator } from '@seriousme/openapi-schema-validator';
import { expect } from 'chai';
import { contractOf } from '../support/openapi-contract.js';
import { BYPASS_SECRET, useSharedService } from '../support/service.js';

const ENDPOINTS = [
  '/ping',
  '/health',
  '/ready',
  '/stats',
  '/browse',
  '/search?q=redis',
  '/suggest?q=redis',
  '/packages/redis',
  '/lookup?name=redis',
  '/similar?name=redis',
  '/export',
  '/changes',
  '/changes.atom',
  '/-/v1/search?text=alpha',
  '/config.json',
  '/api/v1/crates?q=alpha',
  '/packages.json',
  '/search.json?q=alpha',
  '/opensearch.xml',
  '/debug-ip',
  '/openapi.json',
];
/** Answers a GET with 405. */
const POST_ENDPOINT = '/pypi';
const SECRET_ENDPOINTS = ['/get-bypass?secret=wrong', '/rebuild?secret=wrong'];

interface Integer {
  maximum?: number;
  format?: string;
}

/** All schemas of integers in a document. */
function integersOf(node: unknown): Integer[] {
  if (typeof node !== 'object' || node === null) return [];
  const own = (node as { type?: unknown }).type === 'integer' ? [node as Integer] : [];
  return [...own, ...Object.values(node).flatMap(integersOf)];
}

describe('Responses to browsers', function () {
  const suite = useSharedService();
  const get = (path: string, init?: RequestInit) => suite.service.get(path, init);

  describe('by their headers', () => {
    it('allow only reading of responses', async () => {
      for (const path of [...ENDPOINTS, ...SECRET_ENDPOINTS, POST_ENDPOINT, '/nowhere', '/search?q=a']) {
        const { headers } = await get(path);
        expect(headers.get('Content-Security-Policy'), path).to.equal(
          "default-src 'none';frame-ancestors 'none'",
        );
        expect(headers.get('X-Content-Type-Options'), path).to.equal('nosniff');
        expect(headers.get('Referrer-Policy'), path).to.equal('no-referrer');
        // The proxy's decision: it would bind other hosts of the operator.
        expect(headers.has('Strict-Transport-Security'), path).to.equal(false);
        expect(headers.has('X-Powered-By'), path).to.equal(false);
        // Without it, a cache may keep a response for as long as it likes.
        expect(headers.has('Cache-Control'), path).to.equal(true);
      }
    });

    it('are readable from any origin on all paths without a secret, including error responses', async () => {
      for (const path of [...ENDPOINTS, '/search?q=a', '/nowhere', '/packages/none']) {
        const { headers } = await get(path, { headers: { Origin: 'https://other.example' } });
        expect(headers.get('Access-Control-Allow-Origin'), path).to.equal('*');
        expect(headers.get('Access-Control-Expose-Headers'), path).to.equal('*');
        expect(headers.has('Access-Control-Allow-Credentials'), path).to.equal(false);
      }
    });

    it('allow preflight requests for the headers of any client, also on unknown paths', async () => {
      const asked =
        'x-bypass-token,if-none-match,x-request-id,cache-control,content-type,traceparent,baggage';
      for (const path of ['/search', '/nowhere']) {
        const { status, headers } = await get(path, {
          method: 'OPTIONS',
          headers: {
            Origin: 'https://other.example',
            'Access-Control-Request-Method': 'GET',
            'Access-Control-Request-Headers': asked,
          },
        });
        expect(status, path).to.equal(204);
        expect(headers.get('Access-Control-Allow-Origin')).to.equal('*');
        expect(headers.get('Access-Control-Allow-Methods')).to.equal('GET,HEAD');
        expect(headers.get('Access-Control-Allow-Headers')).to.equal(asked);
      }
    });

    it('are hidden from other origins and not cached on the secret endpoints', async () => {
      for (const path of [...SECRET_ENDPOINTS, `/get-bypass?secret=${BYPASS_SECRET}`]) {
        const headers = { Origin: 'https://other.example', 'Access-Control-Request-Method': 'GET' };
        const answer = await get(path, { headers });
        expect(answer.headers.has('Access-Control-Allow-Origin'), path).to.equal(false);
        expect(answer.headers.get('Cross-Origin-Resource-Policy'), path).to.equal('same-origin');
        expect(answer.headers.get('Cache-Control'), path).to.equal('no-store');
        for (const method of ['OPTIONS', 'POST', 'HEAD']) {
          const refused = await get(path, { method, headers });
          expect(refused.status, `${method} ${path}`).to.equal(405);
          expect(refused.headers.has('Access-Control-Allow-Origin'), `${method} ${path}`).to.equal(false);
        }
      }
    });
  });

  it('are described by a valid OpenAPI document with valid examples', async () => {
    const { body: document, text } = await get('/openapi.json');
    const { valid, errors } = await new Validator().validate(
      document as Parameters<Validator['validate']>[0],
    );
    expect(errors).to.be.undefined;
    expect(valid).to.equal(true);
    contractOf(text).checkExamples();
    // Generated clients of some languages use 32 bits without it.
    for (const schema of integersOf(document)) {
      expect(schema).to.satisfy(
        ({ maximum = Infinity, format }: Integer) => maximum < 2 ** 31 || format === 'int64',
      );
    }
    expect(Object.keys((document as { paths: object }).paths)).to.have.members(
      [...ENDPOINTS, ...SECRET_ENDPOINTS, POST_ENDPOINT].map((path) =>
        path.replace(/\?.*/, '').replace('/redis', '/{name}'),
      ),
    );
  });
});
