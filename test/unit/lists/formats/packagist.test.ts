import { expect } from 'chai';
import { convert, useListServer } from '../../../support/list-server.js';

describe('The format packagist', () => {
  const serve = useListServer();
  async function convertFrom(files: Record<string, unknown>) {
    const { origin, requests } = await serve((url) => {
      const file = files[url.pathname];
      return file === undefined ? undefined : JSON.stringify(file);
    });
    const outcome = await convert('packagist', `${origin}/repo/packages.json`);
    return { outcome, requests: requests.map(({ url }) => url), origin };
  }

  it('follows included files recursively, each once', async () => {
    const { outcome, requests } = await convertFrom({
      '/repo/packages.json': {
        packages: { 'a/a': {} },
        'provider-includes': { 'p/one$%hash%.json': { sha256: '1' }, 'p/two$%hash%.json': { sha256: '2' } },
        includes: { 'include/all.json': { sha1: 'x' } },
        'providers-url': '/p/%package%$%hash%.json',
      },
      '/repo/p/one$1.json': {
        providers: { 'b/b': { sha256: 'x' } },
        'provider-includes': { 'p/two$2.json': {} },
      },
      '/repo/p/two$2.json': { providers: { 'c/c': {}, 'a/a': {} } },
      '/repo/include/all.json': { packages: { 'd/d': { '1.0': {} } }, includes: { 'include/all.json': {} } },
    });
    expect(outcome).to.deep.equal(['a/a', 'b/b', 'c/c', 'd/d'].map((name) => ({ name })));
    expect(requests).to.have.length(4);
  });

  it('prefers the available packages, then the list', async () => {
    const all = {
      packages: { 'a/a': {} },
      includes: { x: {} },
      list: '/list.json',
      'available-packages': ['b/b'],
    };
    expect((await convertFrom({ '/repo/packages.json': all })).outcome).to.deep.equal([{ name: 'b/b' }]);
    const other = await serve(() => '{"packageNames":["c/c"]}');
    const elsewhere = { ...all, 'available-packages': undefined, list: `${other.origin}/x` };
    expect((await convertFrom({ '/repo/packages.json': elsewhere })).outcome).to.deep.equal([
      { name: 'c/c' },
    ]);
  });

  it('reads the JSON of PHP as Composer does', async () => {
    const packages = { 'a/a': {}, 'b/b': {} };
    const include = { packages };
    for (const root of [
      { 'available-packages': [], packages },
      { 'available-packages': {}, includes: { 'all.json': {} } },
      { 'available-packages': null, packageNames: [], list: null, packages },
      { 'available-packages': [], list: '', packages },
      { 'available-packages': { 1: 'a/a', 5: 'b/b' }, packages: [] },
      { packageNames: { 1: 'a/a', 5: 'b/b' } },
      { packages: { 1: { '1.0': { name: 'a/a' } }, 5: [{ name: 'b/b' }] } },
      { packages: [{ '1.0': { name: 'a/a' } }, { '1.0': { name: 'b/b' } }] },
    ]) {
      const { outcome } = await convertFrom({ '/repo/packages.json': root, '/repo/all.json': include });
      expect(outcome, JSON.stringify(root)).to.deep.equal([{ name: 'a/a' }, { name: 'b/b' }]);
    }
  });
});
