import { request as rawRequest } from 'node:http';
import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { useService } from '../support/service.js';

describe('Invalid requests get', () => {
  const suite = useService(() => packagesNamed(['alpha', 'beta']));

  const invalid: [path: string, detail: RegExp][] = [
    ['/search', /^q is required/],
    ['/search?q=', /^q must have 2 to 100 characters/],
    ['/search?q=a', /^q must have 2 to 100 characters/],
    ['/search?q=%20a%20', /^q must have 2 to 100 characters/],
    ['/search?q=%F0%9F%9A%80', /^q must have 2 to 100 characters/],
    [`/search?q=${'a'.repeat(101)}`, /^q must have 2 to 100 characters/],
    ['/search?q=ab&q=cd', /^q must be given once/],
    ['/search?q=ab&limit=1&limit=2', /^limit must be given once/],
    ['/search?q=ab&limit=0', /^limit must be a whole number/],
    ['/search?q=ab&limit=-1', /^limit must be a whole number/],
    ['/search?q=ab&limit=', /^limit must be a whole number/],
    ['/search?q=ab&limit=1.5', /^limit must be a whole number/],
    ['/search?q=ab&limit=1e2', /^limit must be a whole number/],
    ['/search?q=ab&limit=0x10', /^limit must be a whole number/],
    ['/search?q=ab&limit=%D9%A1', /^limit must be a whole number/],
    ['/browse?page=0', /^page must be a whole number/],
    ['/browse?page=-1', /^page must be a whole number/],
    ['/browse?page=two', /^page must be a whole number/],
    ['/browse?page=9007199254740992', /^page is too large/],
    ['/browse?page=1&page=1', /^page must be given once/],
    ['/browse?limit=0', /^limit must be a whole number/],
    ['/rebuild?secret=a&secret=b', /^secret must be given once/],
    ['/rebuild?force=maybe', /^force must be true or false/],
    ['/get-bypass?secret=a&secret=b', /^secret must be given once/],
  ];
  for (const [path, detail] of invalid) {
    it(`400 invalid_parameter: ${path.length > 60 ? `${path.slice(0, 60)}…` : path}`, async () => {
      expect(expectProblem(await suite.service.get(path), 400, 'invalid_parameter')).to.match(detail);
    });
  }

  it('404 not_found for unknown paths', async () => {
    const unknown = ['/searches', '/search/redis', '/%', '/%E0%A4%A', '/..%2F..', '/__proto__'];
    const beside = ['/page', '/page/', '/page/none.js', '/page/..%2Fmain.js', '/page/.tsbuildinfo', '/docs/'];
    for (const path of [...unknown, ...beside]) {
      expectProblem(await suite.service.get(path), 404, 'not_found');
    }
  });

  it('405 method_not_allowed, with Allow, for other methods', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      const answer = await suite.service.get('/search?q=alpha', { method });
      expectProblem(answer, 405, 'method_not_allowed');
      expect(answer.headers.get('Allow'), method).to.equal('GET, HEAD');
    }
  });

  it('errors without a body for HEAD', async () => {
    const answer = await suite.service.get('/search', { method: 'HEAD' });
    expect(answer.status).to.equal(400);
    expect(answer.text).to.equal('');
  });

  it('400 invalid_parameter for a query that is not UTF-8, but not for one with U+FFFD', async () => {
    expectProblem(await suite.service.get('/search?q=%FF%FEalpha'), 400, 'invalid_parameter');
    expect((await suite.service.get('/search?q=%EF%BF%BDalpha')).body.count).to.equal(0);
  });

  it('no error for unknown parameters, whatever they contain', async () => {
    for (const unknown of ['utm=100%', 'utm=%FF%FE', '%FF=1', '%zz', 'q[]=%FF']) {
      const { status, body } = await suite.service.get(`/search?q=%EF%BF%BDab&${unknown}`);
      expect(status, unknown).to.equal(200);
      expect(body.query).to.equal('\uFFFDab');
    }
  });

  it('404 for a raw path that is not a valid URL', async () => {
    const status = await new Promise((resolve, reject) => {
      rawRequest({ port: new URL(suite.service.url).port, path: '//?#%' }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect(status).to.equal(404);
  });
});
