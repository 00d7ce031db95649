import { expect } from 'chai';
import { INITIAL_LIMIT, LIMIT_STEP, MAX_LIMIT, parseUrl, toUrl } from '../../../src/web/url-state.js';

describe('The URL of the page', () => {
  it('has the state that it was made of', () => {
    const queries = ['redis', '@scope/name', 'c++', 'a&b=c', '100%', 'ünï 🚀', '#1'];
    for (const query of queries)
      for (const limit of [INITIAL_LIMIT, LIMIT_STEP, 3 * LIMIT_STEP, MAX_LIMIT])
        for (const sort of ['weight', 'name'] as const)
          expect(parseUrl(toUrl({ query, sort, limit }))).to.deep.equal({ query, sort, limit });
    for (const page of [1, 2, 1274]) expect(parseUrl(toUrl({ page }))).to.deep.equal({ page });
  });

  it('is relative and as short as possible', () => {
    expect(toUrl({ page: 1 })).to.equal('.');
    expect(toUrl({ page: 3 })).to.equal('?page=3');
    expect(toUrl({ query: 'redis', sort: 'weight', limit: INITIAL_LIMIT })).to.equal('?q=redis');
    expect(toUrl({ query: 'redis', sort: 'name', limit: INITIAL_LIMIT })).to.equal('?q=redis&sort=name');
  });

  it('always selects a view, even if it is malformed', () => {
    for (const search of ['', '?', '?page=0', '?page=-1', '?page=x', '?page=1e99', '?q=', '?q=%20', '?x=y']) {
      expect(parseUrl(search), search).to.deep.equal({ page: 1 });
    }
    const redis = { query: 'redis', sort: 'weight', limit: INITIAL_LIMIT };
    expect(parseUrl('?q=%20redis%20&page=3&sort=rank')).to.deep.equal(redis);
    for (const limit of ['', '7', '-500', '0', '750', '1e3x', String(MAX_LIMIT + LIMIT_STEP)])
      expect(parseUrl(`?q=redis&limit=${limit}`), limit).to.deep.equal(redis);
    expect(parseUrl('?sort=name')).to.deep.equal({ page: 1 });
  });
});
