import { expect } from 'chai';
import { expectProblem } from '../support/expect-problem.js';
import { getRequest, RawConnection } from '../support/raw-connection.js';
import { useSharedService } from '../support/service.js';

// All rejected values: test/unit/http/query-params.test.ts.
describe('Invalid requests get', () => {
  const suite = useSharedService();
  const get = (path: string, init?: RequestInit) => suite.service.get(path, init);

  const LENGTH = /^q must have 2 to 100 characters/;
  const invalid: [path: string, detail: RegExp][] = [
    ['/search', /^q is required/],
    ['/search?;q=alpha', /^q is required/],
    ['/search?__proto__=alpha', /^q is required/],
    ['/search?q[]=alpha', /^q is required/],
    ['/search?q=%20a%20', LENGTH],
    ['/search?q=%', LENGTH],
    ['/search?q=%F0%9F%9A%80', LENGTH],
    [`/search?q=${'x'.repeat(15_000)}`, LENGTH],
    ['/search?q=ab&q=ab', /^q must be given once/],
    [`/search?${'q=ab&'.repeat(3000)}`, /^q must be given once/],
    ['/search?q=%FF%FEalpha', /^q must be UTF-8/],
    ['/search?q=ab&limit=__proto__', /^limit must be a whole number/],
    ['/search?q=ab&limit=%D9%A1', /^limit must be a whole number/],
    ['/browse?limit=0', /^limit must be a whole number/],
    ['/browse?page=1e3', /^page must be a whole number/],
    ['/browse?page=9007199254740992', /^page is too large/],
    ['/browse?page=1&page=1', /^page must be given once/],
    ['/rebuild?secret=a&secret=b', /^secret must be given once/],
    ['/rebuild?force=maybe', /^force must be true or false/],
    ['/get-bypass?secret=a&secret=b', /^secret must be given once/],
  ];
  for (const [path, detail] of invalid) {
    it(`400 invalid_parameter: ${path.slice(0, 60)}`, async () => {
      expect(expectProblem(await get(path), 400, 'invalid_parameter')).to.match(detail);
    });
  }

  it('404 not_found for unknown paths', async () => {
    const unknown = [
      '/searches',
      '/search/',
      '/SEARCH?q=ab',
      '//search?q=ab',
      '/%',
      '/%00',
      '/%E0%A4%A',
      '/..%2F..',
    ];
    const beside = ['/page', '/page/', '/page/none.js', '/page/..%2Fmain.js', '/page/.tsbuildinfo', '/docs/'];
    for (const path of [...unknown, '/__proto__', '/constructor', ...beside])
      expectProblem(await get(path), 404, 'not_found');
    // `fetch` would not send this one.
    const client = await RawConnection.open(suite.service.url);
    client.send(getRequest('//?#%', 'Connection: close\r\n'));
    await client.closed;
    expect(client.responses.map(({ status }) => status)).to.deep.equal([404]);
  });

  it('405 method_not_allowed, with Allow, for other methods', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      const answer = await get('/search?q=alpha', { method });
      expectProblem(answer, 405, 'method_not_allowed');
      expect(answer.headers.get('Allow'), method).to.equal('GET, HEAD');
    }
  });

  it('errors without a body for HEAD', async () => {
    expect(await get('/search', { method: 'HEAD' })).to.include({ status: 400, text: '' });
  });

  it('no error for unusual values, and for unknown parameters, whatever they contain', async () => {
    const texts: [querystring: string, query: string][] = [
      ['q=a%', 'a%'],
      ['q=%zz', '%zz'],
      ['q=%00%00', '\0\0'],
      ['q=__proto__&__proto__[limit]=1', '__proto__'],
      ['&&&q=alpha&&', 'alpha'],
      ['q=alpha?q=beta', 'alpha?q=beta'],
      [`${'a&'.repeat(7000)}q=alpha`, 'alpha'],
    ];
    const unknown = [
      'utm=100%',
      'utm=%FF%FE',
      '%FF=1',
      '%zz',
      'q[]=%FF',
      'colour=red&colour=blue&__proto__=x',
    ];
    for (const more of unknown) texts.push([`q=%EF%BF%BDab&${more}`, '\uFFFDab']);
    for (const [querystring, query] of texts) {
      const { status, body } = await get(`/search?limit=5&${querystring}`);
      expect({ status, query: body.query as unknown }, querystring.slice(0, 60)).to.deep.equal({
        status: 200,
        query,
      });
    }
  });
});
