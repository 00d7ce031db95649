import { expect } from 'chai';
import { ApiError, listWith, requestJson } from '../../../src/web/api.js';

const UNEXPECTED =
  'An unexpected response arrived instead of the service’s. If this persists, reload the page.';
const ENTRY = { no: 1, name: 'beta', version: '1', url: 'https://registry.example/beta', rank: 0 };

const list = (...results: unknown[]) => JSON.stringify({ query: 'beta', results });

/** The error of a request for the results of "beta". */
function errorOf(body: string, init: ResponseInit = {}): Promise<ApiError> {
  globalThis.fetch = () => Promise.resolve(new Response(body === '' ? null : body, init));
  return requestJson('search', listWith({ query: 'beta' })).then(
    () => expect.fail('the response was accepted'),
    (error: unknown) => error as ApiError,
  );
}

describe('A response that is not of the service', () => {
  const { fetch } = globalThis;
  after(() => {
    globalThis.fetch = fetch;
  });

  // What proxies, captive portals and caches send.
  for (const [what, status, body, message] of [
    ['a login page', 200, '<!doctype html><title>Sign in</title>', UNEXPECTED],
    ['an empty body', 200, '', UNEXPECTED],
    ['no content', 204, '', UNEXPECTED],
    ['a body that was cut off', 200, '{"query":"beta","results":[{"na', UNEXPECTED],
    ['null', 200, 'null', UNEXPECTED],
    ['another object', 200, '{"query":"beta"}', UNEXPECTED],
    ['a list', 200, JSON.stringify([ENTRY]), UNEXPECTED],
    ['the results of another request', 200, list(ENTRY).replace('beta', 'other'), UNEXPECTED],
    ['results that are no packages', 200, list(ENTRY, { ...ENTRY, url: null }), UNEXPECTED],
    ['a problem with another detail', 500, '{"detail":{"a":1}}', 'The service responded with status 500.'],
    ['a problem that is null', 403, 'null', 'The service responded with status 403.'],
    ['a problem that is not JSON', 502, '<h1>Bad gateway</h1>', 'The service responded with status 502.'],
    ['a problem without detail', 400, '{"code":"toString"}', 'The service responded with status 400.'],
  ] as const)
    it(`is an error that a user can read: ${what}`, async () => {
      const error = await errorOf(body, { status });
      expect(error).to.be.instanceOf(ApiError);
      expect(error.message).to.equal(message);
      expect(error.retryAfter).to.equal(status >= 400 && status < 500 ? undefined : 10);
    });

  it('is retried when it says, or else in ten seconds', async () => {
    for (const [stated, seconds] of [
      ['soon', 10],
      ['', 10],
      ['0', 10],
      ['90', 90],
      ['86400', 3600],
    ] as const) {
      const { retryAfter } = await errorOf('', { status: 503, headers: { 'Retry-After': stated } });
      expect(retryAfter, stated).to.equal(seconds);
    }
  });
});
