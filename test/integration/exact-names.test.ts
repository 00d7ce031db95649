import { expect } from 'chai';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { bundledPackages, packagesNamed } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { getRequest, useConnections } from '../support/raw-connection.js';
import { useService } from '../support/service.js';

const AWKWARD_NAMES = [
  'a', 'A', 'é', 'e\u0301', '🚀', '/', '//', 'a/b', '@scope/name', '%', '%2F', '%%', '100%', 'a%20b', 'a b', '?', 'a?b', '#', 'c#', 'a#b', '&',
  'a&name=b', '=', '+', 'c++', ';', ',', '"', "'", '\\', '<b>', '{name}', '.', '..', '...', '.hidden', 'a/../b', '日本語', 'İ', 'i', 'ı', 'ß', 'ẞ', 'ss',
  '\u{10FFFF}', '*', '_', '-', '~', '__proto__', 'constructor', 'x'.repeat(512), 'é'.repeat(256),
  '🚀'.repeat(128), 'Mixed.Case', 'mixed.case', 'MIXED.CASE', 'null', 'true', '0',
]; // prettier-ignore

/** Not in the dataset, but similar to names that are. */
const MISSING_NAMES = ['b', 'É', 'a/', '/a', '%2f', 'a%2520b', 'mixed.Case', '....', 'x'.repeat(511), '\u{10FFFE}', 'I', 'SS']; // prettier-ignore

describe('Exact names', function () {
  this.timeout(60_000);
  const packages = [...packagesNamed(AWKWARD_NAMES), ...others()];
  const suite = useService(
    () => packages,
    () => ({ PURL_TYPE: 'npm' }),
  );

  function others() {
    const taken = new Set(AWKWARD_NAMES);
    return bundledPackages()
      .filter(({ name }, i) => i % 64 === 0 && !taken.has(name))
      .map((entry, i) => ({ ...entry, no: AWKWARD_NAMES.length + 1 + i }));
  }

  // Sends paths that `fetch` would normalize.
  const { send } = useConnections(() => suite.service.url);

  it('are found by /packages, code point for code point', async () => {
    const id = await suite.service.snapshot();
    for (const entry of packages.slice(0, AWKWARD_NAMES.length)) {
      // Clients normalize these path segments.
      if (['.', '..'].includes(entry.name)) continue;
      const { status, body, headers } = await suite.service.get(
        `/packages/${encodeURIComponent(entry.name)}`,
      );
      expect(status, entry.name).to.equal(200);
      expect(body).to.deep.equal(entry);
      expect(headers.get('ETag')).to.match(/^W\//);
      expect(headers.get('X-Snapshot')).to.equal(id);
    }
    for (const name of MISSING_NAMES) {
      const answer = await suite.service.get(`/packages/${encodeURIComponent(name)}`);
      expectProblem(answer, 404, 'unknown_package');
      expect(answer.headers.get('X-Snapshot')).to.equal(id);
    }
  });

  it('are found by /lookup, in the order of the request, duplicates included', async () => {
    const random = seededRandom(3);
    const byName = new Map(packages.map((entry) => [entry.name, entry]));
    const known = (names: readonly string[]) =>
      names.map((name) => ({ name, package: byName.get(name) ?? null }));
    for (let i = 0; i < 20; i++) {
      const names = Array.from({ length: integer(random, 1, 12) }, () =>
        random() < 0.5 ? pick(random, [...AWKWARD_NAMES, ...MISSING_NAMES]) : pick(random, packages).name,
      );
      names.push(names[0] as string);
      const query = names.map((name) => `name=${encodeURIComponent(name)}`).join('&');
      const { status, body } = await suite.service.get(`/lookup?${query}`);
      expect(status).to.equal(200);
      const results = known(names);
      const count = results.filter((result) => result.package !== null).length;
      expect(body).to.deep.equal({ count, results });
    }
  });

  it('can be looked up a hundred at a time', async () => {
    const names = packages.slice(-100).map(({ name }) => name);
    const query = names.map((name) => `name=${encodeURIComponent(name)}`);
    const { body } = await suite.service.get(`/lookup?${query.join('&')}`);
    expect(body.count).to.equal(100);
    expect((body.results as { name: string }[]).map(({ name }) => name)).to.deep.equal(names);
    const more = await suite.service.get(`/lookup?${[...query, 'name=a'].join('&')}`);
    expectProblem(more, 400, 'invalid_parameter');
    expect(more.body.detail).to.equal('name and purl must be given at most 100 times together');
  });

  it('are found by package URLs among names, in the order of the query string', async () => {
    const purl = 'pkg:npm/%40scope/name@4';
    const { body } = await suite.service.get(
      `/lookup?name=b&purl=${encodeURIComponent(purl)}&name=a%2Fb&n%61me=c%2B%2B&purl=pkg:npm/lost`,
    );
    const results = body.results as { name: string; purl?: string; package: PackageEntry | null }[];
    expect(results.map(({ name, purl, package: entry }) => [name, purl, entry?.name])).to.deep.equal([
      ['b', undefined, undefined],
      ['@scope/name', purl, '@scope/name'],
      ['a/b', undefined, 'a/b'],
      ['c++', undefined, 'c++'],
      ['lost', 'pkg:npm/lost', undefined],
    ]);
    expect(body.count).to.equal(3);
  });

  it('are not found by package URLs of another type', async () => {
    const refused = await suite.service.get('/lookup?purl=pkg:npm/a&purl=pkg:pypi/a');
    expect(expectProblem(refused, 400, 'invalid_parameter')).to.equal(
      'purl 2 of 2 must be a package URL of this registry: pkg:npm/<name>',
    );
  });

  // Other invalid names: errors.test.ts.
  const paths: [path: string, expected: string | number][] = [
    ['/packages/@scope/name', '@scope/name'],
    ['/packages/@scope%2Fname', '@scope/name'],
    ['/packages/%40scope%2fname', '@scope/name'],
    ['/packages//', '/'],
    ['/packages///', '//'],
    ['/packages/a/../b', 'a/../b'],
    ['/packages/.', '.'],
    ['/packages/..', '..'],
    ['/packages/%2E%2E', '..'],
    ['/packages/100%', '100%'],
    ['/packages/100%25', '100%'],
    ['/packages/%252F', '%2F'],
    ['/packages/a%2520b', 'a%20b'],
    ['/packages/a+b', 404],
    ['/packages/c++', 'c++'],
    ['/packages/a?snapshot=', 400],
    ['/packages/a?b', 'a'],
    ['/packages/a?x=/../b', 'a'],
    ['/packages/é', 400],
    // A request target has no fragment, so `#` belongs to the name. Browsers do not send this.
    ['/packages/c#', 'c#'],
  ];

  it('are percent-decoded once, with a literal or an encoded slash', async () => {
    for (const [path, expected] of paths) {
      const [response] = await send(getRequest(path, 'Connection: close\r\n'));
      if (typeof expected === 'number') expect(response?.status, path).to.equal(expected);
      else expect(JSON.parse(response?.text ?? ''), path).to.include({ name: expected });
    }
  });

  it('have cacheable responses even if the package does not exist, whatever the condition', async () => {
    const path = '/packages/none';
    const first = await suite.service.get(path);
    expect(first.headers.get('Cache-Control')).to.contain('max-age=30');
    for (const condition of [first.headers.get('ETag') ?? '', '*']) {
      // Conditions apply only to existing resources (RFC 9110, section 13.2.1).
      const again = await suite.service.get(path, { headers: { 'If-None-Match': condition } });
      expectProblem(again, 404, 'unknown_package');
      for (const name of ['ETag', 'X-Snapshot', 'Cache-Control', 'Access-Control-Expose-Headers']) {
        expect(again.headers.get(name), name).to.equal(first.headers.get(name));
      }
    }
    const head = await suite.service.get(path, { method: 'HEAD' });
    expect(head).to.include({ status: 404, text: '' });
  });

  it('that a rebuild adds get a new response, except in the old snapshot', async () => {
    const path = '/packages/none-yet';
    const before = await suite.service.get(path);
    await suite.publish([
      ...packages,
      ...packagesNamed(['none-yet']).map((entry) => ({ ...entry, no: 900_000 })),
    ]);
    const conditional = { headers: { 'If-None-Match': before.headers.get('ETag') ?? '' } };
    const after = await suite.service.get(path, conditional);
    expect(after.body).to.include({ name: 'none-yet' });
    const snapshot = before.headers.get('X-Snapshot') ?? '';
    expectProblem(await suite.service.get(`${path}?snapshot=${snapshot}`), 404, 'unknown_package');
    const lookup = await suite.service.get(`/lookup?name=none-yet&snapshot=${snapshot}`);
    expect(lookup.body.count).to.equal(0);
    expect(lookup.headers.get('X-Snapshot')).to.equal(snapshot);
  });
});
