import { expect } from 'chai';
import { expectProblem } from '../support/expect-problem.js';
import { useSharedService } from '../support/service.js';

// All rejected values of the first endpoints: test/unit/http/request/query-params.test.ts. What never reaches a route:
// malformed-requests.test.ts.
describe('Invalid requests get', () => {
  const suite = useSharedService();
  const get = (path: string, init?: RequestInit) => suite.service.get(path, init);

  const invalid: [path: string, detail: string][] = [
    ['/search?q=ab&q=ab', 'q must be given once'],
    ['/rebuild?secret=a&secret=b', 'secret must be given once'],
    ['/similar', 'name is required'],
    ['/similar?name=%20%09', 'name must have 1 to 100 characters'],
    [`/similar?name=${'x'.repeat(101)}`, 'name must have 1 to 100 characters'],
    ['/packages/', 'name must have 1 to 512 bytes'],
    [`/packages/${encodeURIComponent('é'.repeat(257))}`, 'name must have 1 to 512 bytes'],
    ['/packages/%FF', 'name must be UTF-8, percent-encoded'],
    ['/packages/a?snapshot=a&snapshot=b', 'snapshot must be given once'],
    ['/lookup', 'name or purl is required'],
    ['/lookup?name=', 'name must have 1 to 512 bytes'],
    [`/lookup?name=a&name=${'x'.repeat(513)}`, 'name 2 of 2 must have 1 to 512 bytes'],
    ['/lookup?name=a&snapshot=x', 'snapshot must be an id from the X-Snapshot header'],
  ];
  for (const [path, detail] of invalid) {
    it(`400 invalid_parameter: ${path.slice(0, 60)}`, async () => {
      expect(expectProblem(await get(path), 400, 'invalid_parameter')).to.equal(detail);
    });
  }

  it('404 not_found for unknown paths', async () => {
    const unknown = ['/searches', '/search/', '/SEARCH?q=ab', '//search?q=ab', '/__proto__', '/constructor'];
    const malformed = ['/%', '/%00', '/%E0%A4%A', '/..%2F..'];
    const beside = [
      '/page',
      '/page/',
      '/page/none.js',
      '/page/..%2Fmain.js',
      '/page/search-page.ts',
      '/docs/',
    ];
    for (const path of [...unknown, ...malformed, ...beside])
      expectProblem(await get(path), 404, 'not_found');
  });

  it('errors without a body for HEAD', async () => {
    expect(await get('/search', { method: 'HEAD' })).to.include({ status: 400, text: '' });
  });

  it('no error for unknown parameters, whatever they contain', async () => {
    const unknown = `${'a&'.repeat(7000)}%zz&utm=100%&%FF=%FE&q[]=%FF&__proto__[limit]=x`;
    const { status, body } = await get(`/search?${unknown}&q=%00%EF%BF%BD%zz&limit=5`);
    expect(status).to.equal(200);
    expect(body).to.deep.equal({ query: '\0\uFFFD%zz', count: 0, results: [] });
  });
});
