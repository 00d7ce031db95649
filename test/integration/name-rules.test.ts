import { expect } from 'chai';
import { canonicalName, NAME_RULES, type NameRule } from '../../src/util/name-rule.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { ApiClient } from '../../src/mcp/api-client.js';
import { checkPackages } from '../../src/mcp/check-packages.js';
import { SnapshotReader } from '../../src/mcp/snapshot-reader.js';
import { AWKWARD_NAMES } from '../fixtures/awkward-names.js';
import { keyOf, packagesBy, respell } from '../fixtures/name-forms.js';
import { registryNames } from '../fixtures/package-names.js';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { atOnce } from '../support/at-once.js';
import { packagesNamed } from '../support/datasets.js';
import { expectInvalid, expectProblem } from '../support/expect-problem.js';
import { expectSearch } from '../support/expect-search.js';
import { RULE_SEARCHES } from '../support/long-runs.js';
import { useService } from '../support/service.js';

/** In one of their spellings. */
function packagesOf(rule: NameRule): PackageEntry[] {
  const generated = registryNames();
  return packagesBy(rule, [...AWKWARD_NAMES, ...Array.from({ length: 1200 }, () => generated.next().value)]);
}

describe('Names by the rule of a registry', function () {
  this.timeout(60_000 + RULE_SEARCHES * 500);
  const suite = useService(
    () => packagesNamed(['first']),
    () => ({ CACHE_MAX_BYTES: '0' }),
  );

  /** A snapshot by a rule, and what brute force finds in it. */
  class Comparison {
    readonly packages: PackageEntry[];
    readonly #byForm: Map<string, PackageEntry>;
    readonly #random = seededRandom(11);

    constructor(
      readonly rule: NameRule,
      /** The parameter that selects the snapshot. */
      private readonly snapshot = '',
    ) {
      this.packages = packagesOf(rule);
      this.#byForm = new Map(this.packages.map((entry) => [keyOf(rule, entry.name), entry]));
    }

    #name(): string {
      // Every other one is awkward: these are few and most likely to fail.
      return this.#random() < 0.5
        ? pick(this.#random, AWKWARD_NAMES)
        : pick(this.#random, this.packages).name;
    }

    async lookUp(): Promise<void> {
      const names = Array.from({ length: 4 }, () => respell(this.#random, this.#name()));
      const query = names.map((name) => `name=${encodeURIComponent(name)}`).join('&');
      const results = names.map((name) => ({
        name,
        package: this.#byForm.get(keyOf(this.rule, name)) ?? null,
      }));
      const { body } = await suite.service.get(`/lookup?${query}${this.snapshot}`);
      expect(body.results, `${this.rule}: ${query}`).to.deep.equal(results);
      for (const { name, package: entry } of results) {
        if (['.', '..'].includes(name)) continue;
        await this.#expectPackage(name, entry);
      }
    }

    async #expectPackage(name: string, entry: PackageEntry | null): Promise<void> {
      const encoded = encodeURIComponent(name);
      const path = `/packages/${this.#random() < 0.5 ? encoded : encoded.replaceAll('%2F', '/')}`;
      const answer = await suite.service.get(`${path}?${this.snapshot}`);
      if (entry === null) {
        expectProblem(answer, 404, 'unknown_package');
        return;
      }
      expect(answer.body, `${this.rule}: ${path}`).to.deep.equal(entry);
      const location = answer.headers.get('Content-Location');
      if (entry.name === name || ['.', '..'].includes(entry.name)) expect(location, path).to.equal(null);
      else {
        const { pathname } = new URL(location ?? '', `http://any/prefix${path}`);
        expect(pathname, path).to.equal(`/prefix/packages/${encodeURIComponent(entry.name)}`);
      }
    }
  }

  it('are looked up as brute force finds them, in each snapshot', async () => {
    let before: { comparison: Comparison; id: string } | undefined;
    for (const rule of NAME_RULES) {
      for (let snapshot = 0; snapshot < 2; snapshot++) {
        const comparison = new Comparison(rule);
        const id = await suite.publish(comparison.packages, { NAME_RULE: rule });
        if (before !== undefined) {
          // The orders of two rules cannot be compared: a new chain begins.
          const changes = await suite.service.get(`/changes?since=${before.id}`);
          if (before.comparison.rule === rule) expect(changes.body.results).to.deep.equal([]);
          else expectProblem(changes, 410, 'snapshot_gone');
          const pinned = new Comparison(before.comparison.rule, `&snapshot=${before.id}`);
          for (let i = 0; i < 5; i++) await pinned.lookUp();
        }
        await atOnce(RULE_SEARCHES / 8, () => comparison.lookUp());
        const { body } = await suite.service.get('/stats');
        expect(body.name_rule).to.equal(rule === 'exact' ? undefined : rule);
        before = { comparison, id };
      }
    }
  });
});

describe('Lists of registries', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['first']));
  const PACKAGE_URL_TEMPLATE = 'https://registry.example/{name}';
  const get = (path: string) => suite.service.get(path);

  it('of format pypi have each project in any spelling', async () => {
    const projects = ['Flask-SQLAlchemy', 'typing_extensions', 'zope.interface'].map((name) => ({ name }));
    const list = JSON.stringify({ meta: { 'api-version': '1.1' }, projects });
    await suite.publish(list, { DATASET_FORMAT: 'pypi', PACKAGE_URL_TEMPLATE });
    await expectInvalid(suite.service, ...['._', '%20--%20', '-'].map((q) => `/search?q=${q}`));
    expect((await get('/suggest?q=._')).body).to.deep.equal(['._', [], [], []]);
    expect((await get('/suggest?q=g_e')).body[1]).to.deep.equal(['typing_extensions']);
    expect((await get('/stats')).body).to.include({ name_rule: 'pypi' });
    const reader = await SnapshotReader.open(
      new ApiClient(new URL(suite.service.url)),
      new AbortController().signal,
    );
    const names = ['flask_sqlalchemy>=3', 'zope.interface', 'zopeinterface'];
    const checked = await checkPackages(reader, names, false);
    expect(checked.map((one) => [one.checked_name, one.status, one.package?.name])).to.deep.equal([
      ['flask_sqlalchemy', 'exists', 'Flask-SQLAlchemy'],
      [undefined, 'exists', 'zope.interface'],
      [undefined, 'exists_as', 'zope.interface'],
    ]);
  });

  it('have changes by the listed names: a new spelling replaces the old one', async () => {
    const named = (...names: string[]) => packagesNamed(['a', 'b', 'c', 'd', 'e', 'f', 'g', ...names]);
    const env = { NAME_RULE: 'pypi' };
    await suite.publish(named('Old'), env);
    await suite.publish(named('Old', 'New_Name'), env);
    await suite.publish(named('Old', 'new.name'), env);
    const { results } = (await get('/changes')).body as { results: { change: string; name: string }[] };
    expect(results.map(({ change, name }) => `${change} ${name}`)).to.deep.equal([
      'removed New_Name',
      'added new.name',
    ]);
    const titles = [...(await get('/changes.atom')).text.matchAll(/<title[^>]*>.*?(\w[\w.]*) 1\.0\.0/g)];
    expect(titles.map(([, name]) => name)).to.deep.equal(['new.name']);
    // Filters compare names as searches do.
    for (const q of ['NEW-NAME', 'w__n', 'new._n&match=prefix', 'new_name&match=exact']) {
      expect((await get(`/changes?q=${q}`)).body.results, q).to.deep.equal(results);
      expect((await get(`/changes.atom?q=${q}`)).text, q).to.include('new.name 1.0.0');
    }
    await expectInvalid(suite.service, '/changes?q=._', '/changes.atom?q=._');
  });

  it('of format npm have names that differ by case', async () => {
    const rows = ['React', 'react'].map((id) => ({ id }));
    await suite.publish(JSON.stringify({ rows, total_rows: 2 }), {
      DATASET_FORMAT: 'npm',
      PACKAGE_URL_TEMPLATE,
    });
    for (const name of ['React', 'react']) expect((await get(`/packages/${name}`)).body).to.include({ name });
    expectProblem(await get('/packages/REACT'), 404, 'unknown_package');
    await expectSearch(suite.service, 'react', ['React', 'react']);
    expect((await get('/stats')).body).not.to.have.property('name_rule');
  });

  it('of any format refer to the listed name from any path', async () => {
    await suite.publish(packagesNamed(['A/b', 'x:y', '..', '%2f', '@S/Q_']), { NAME_RULE: 'pypi' });
    for (const [path, location] of [
      ['a%2Fb', './A%2Fb'],
      ['a/b', '../A%2Fb'],
      ['X:Y', './x%3Ay'],
      ['%252F', './%252f'],
      ['@s/q-', '../%40S%2FQ_'],
      ['_', null],
    ] as const) {
      const { status, headers } = await get(`/packages/${path}`);
      expect(status, path).to.equal(200);
      expect(headers.get('Content-Location'), path).to.equal(location);
    }
  });
});

describe('The twin of the index', function () {
  this.timeout(60_000);
  const suite = useService(() => packagesNamed(['first']));

  /** Characters of up to Unicode 15, which every release of Java since 21 knows. */
  const RANGES = [[0x20, 0x7e], [0xa0, 0x24f], [0x370, 0x52f], [0x10a0, 0x10ff], [0x13a0, 0x13f5], [0x1e00, 0x1fff], [0x2160, 0x2188], [0x24b6, 0x24e9], [0x2c00, 0x2d2d], [0xa640, 0xa69b], [0xff21, 0xff5a], [0x10400, 0x1044f], [0x1e900, 0x1e943], [0x1f680, 0x1f6c0]] as const; // prettier-ignore

  it('gives 100,000 random names the forms that Elasticsearch gives them, by every rule', async () => {
    const random = seededRandom(5);
    const character = () => {
      const kind = random();
      if (kind < 0.35) return pick(random, ['-', '_', '.', 'İ', 'Σ', 'ς', 'ı', 'K', 'ẞ', 'Ǆ', 'ǅ']);
      const [from, to] = kind < 0.7 ? RANGES[0] : pick(random, RANGES);
      return String.fromCodePoint(integer(random, from, to));
    };
    const names = Array.from({ length: 100_000 }, () =>
      Array.from({ length: integer(random, 1, 14) }, character).join(''),
    );
    const { elasticsearch } = suite.service;
    for (const rule of ['lowercase', 'pypi', 'crates'] as const) {
      await suite.publish(packagesNamed([`by-${rule}`]), { NAME_RULE: rule });
      for (let from = 0; from < names.length; from += 10_000) {
        const text = names.slice(from, from + 10_000);
        const { alias: index } = suite.service;
        const { tokens = [] } = await elasticsearch.indices.analyze({ index, field: 'name.lowercase', text });
        const different = text.filter((name, i) => tokens[i]?.token !== canonicalName(rule, name));
        expect(different, rule).to.deep.equal([]);
      }
    }
  });
});
