import { expect } from 'chai';
import { expectProblem } from '../support/expect-problem.js';
import { keepSecret } from '../support/secret-scanner.js';
import { REBUILD, useSharedService } from '../support/service.js';

/** The last byte of à is a space in Latin-1. */
const SECRET = keepSecret('sésame 🚀 change-me à');
/** As `fetch` sends it: headers are bytes. */
const IN_HEADER = Buffer.from(SECRET).toString('latin1');
const IN_QUERY = `/get-bypass?secret=${encodeURIComponent(SECRET)}`;

describe('Endpoints with a secret', () => {
  const suite = useSharedService(() => ({ BYPASS_SECRET: SECRET, TRUSTED_PROXIES: '127.0.0.1' }));
  /** From an address of its own: other suites send wrong secrets, too. */
  const get = (path: string, Authorization = '') =>
    suite.service.get(path, { headers: { Authorization, 'X-Forwarded-For': '203.0.113.9' } });

  it('accept it in the query or as a bearer token in UTF-8', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer ']) {
      expect((await get('/get-bypass', `${scheme} ${IN_HEADER}`)).status, scheme).to.equal(200);
    }
    expect((await get(IN_QUERY)).status).to.equal(200);
  });

  it('ignore other schemes, which proxies add', async () => {
    for (const scheme of ['Basic', 'Digest', 'ApiKey', 'Bearers', '']) {
      expect((await get(IN_QUERY, `${scheme} ${IN_HEADER}`)).status, scheme).to.equal(200);
    }
    expectProblem(await get('/get-bypass', `Basic ${IN_HEADER}`), 403, 'forbidden');
  });

  it('reject a wrong or empty bearer token', async () => {
    for (const token of ['Bearer', 'Bearer wrong', `Bearer ${IN_HEADER}x`]) {
      expectProblem(await get('/get-bypass', token), 403, 'forbidden');
    }
  });

  it('reject a token beside the query', async () => {
    for (const path of [IN_QUERY, '/get-bypass?secret=']) {
      const detail = expectProblem(await get(path, `Bearer ${IN_HEADER}`), 400, 'invalid_parameter');
      expect(detail).to.equal('secret must not be given together with Authorization: Bearer');
    }
  });

  it('have an effect with GET only', async () => {
    const { service } = suite;
    for (const path of [REBUILD, IN_QUERY]) {
      for (const method of ['HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']) {
        const answer = await service.get(path, { method });
        expect(answer.status, method).to.equal(405);
        expect(answer.headers.get('Allow'), method).to.equal('GET');
        expect(answer.headers.get('Cache-Control'), method).to.equal('no-store');
      }
    }
    expect(service.isRebuilding()).to.equal(false);
    expect(Object.values(service.outcomes())).to.deep.equal([0, 0, 0, 0]);
  });
});
