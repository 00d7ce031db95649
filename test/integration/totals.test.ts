import { expect } from 'chai';
import { UNCACHED } from '../support/background-reader.js';
import { bundledPackages, packagesNamed } from '../support/datasets.js';
import { expectInvalid } from '../support/expect-problem.js';
import { followNext, linksOf } from '../support/follow-next.js';
import { useService } from '../support/service.js';

/** Of 10,001 names, 9,999 contain `wxyz`, one more contains `wxy`, and all contain `wx`: half of each start with it. */
const MANY = packagesNamed(
  Array.from({ length: 10_001 }, (_, i) => {
    const mark = i < 9999 ? 'wxyz' : i < 10_000 ? 'wxy' : 'wx';
    return i % 2 === 0 ? `${mark}${i}` : `a-${mark}${i}`;
  }),
);

/** Names beside which these are few. */
const PACKAGES = [...MANY, ...bundledPackages().filter((_, i) => i % 16 === 0)].map((entry, i) => ({
  ...entry,
  no: i + 1,
  weight: i % 5,
}));
describe('total', function () {
  this.timeout(60_000);
  const suite = useService(
    () => PACKAGES,
    () => UNCACHED,
  );
  const search = (q: string, params = '') =>
    suite.service.get(`/search?q=${encodeURIComponent(q)}&total=true${params}`);

  it('is exact up to 10,000 matches', async () => {
    for (const sort of ['name', 'weight']) {
      for (const limit of [1, 500]) {
        for (const [q, total, isExact] of [
          ['wxyz', 9999, true],
          ['wxy', 10_000, true],
          ['wx', 10_000, false],
        ] as const) {
          const { body } = await search(q, `&sort=${sort}&limit=${limit}`);
          expect(body, `${q} ${sort}`).to.include({ total, total_is_exact: isExact, count: limit });
          const words = await search(`${q} wx`, `&sort=${sort}&limit=${limit}&match=words`);
          expect(words.body).to.include({ total, total_is_exact: isExact });
          const prefix = await search(q, `&sort=${sort}&limit=${limit}&match=prefix`);
          expect(prefix.body).to.include({ total: q === 'wx' ? 5001 : 5000, total_is_exact: true });
        }
      }
    }
  });
});

describe('total=true', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(Array.from({ length: 20 }, (_, i) => `lib-${i}`)));

  it('adds two members to the first page only', async () => {
    const { service } = suite;
    const plain = await service.get('/search?q=lib&limit=7');
    const counted = await service.get('/search?q=lib&limit=7&total=true');
    expect(counted.text.replace('"total":20,"total_is_exact":true,', '')).to.equal(plain.text);
    expect(linksOf(counted)).to.deep.equal(linksOf(plain));
    expect(counted.headers.get('ETag')).not.to.equal(plain.headers.get('ETag'));
    const absent = await service.get('/search?q=lib&limit=7&total=false');
    expect(absent.text).to.equal(plain.text);
    expect(absent.headers.get('ETag')).to.equal(plain.headers.get('ETag'));
    const pages = await followNext(service, '/search?q=lib&limit=7&total=true');
    expect(pages.map(({ body }) => body.total as unknown)).to.deep.equal([20, undefined, undefined]);
  });

  it('is rejected on later pages and with other values', async () => {
    const { next = '' } = linksOf(await suite.service.get('/search?q=lib&limit=7'));
    expect((await suite.service.get(`/search${next}&total=false`)).status).to.equal(200);
    const invalid = ['', '1', 'True', 'true&total=true'].map((total) => `/search?q=lib&total=${total}`);
    await expectInvalid(suite.service, `/search${next}&total=true`, ...invalid);
  });
});
