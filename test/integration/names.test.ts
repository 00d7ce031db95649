import { expect } from 'chai';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { AWKWARD_NAMES } from '../fixtures/awkward-names.js';
import { packagesNamed } from '../support/datasets.js';
import { useService, type SuiteService } from '../support/service.js';

/** The start of every URL, which the encoded name follows. */
const BASE = 'https://registry.example/p/';
const readBack = (url: string) => decodeURIComponent(url.slice(BASE.length));

/** Browsers remove these path segments. */
const NAMES = AWKWARD_NAMES.filter((name) => !['.', '..'].includes(name));

const PACKAGES = packagesNamed(NAMES).map((entry) => ({
  ...entry,
  url: BASE + encodeURIComponent(entry.name),
}));

function itListsThem(suite: SuiteService): void {
  it('are listed unchanged with URLs that browsers do not change', async () => {
    const listed = (await suite.service.get('/browse?limit=500')).body.results as PackageEntry[];
    expect(listed.map(({ name }) => name)).to.deep.equal(NAMES);
    for (const { name, url } of listed) {
      expect(new URL(url).href, JSON.stringify(name)).to.equal(url);
      expect(readBack(url)).to.equal(name);
    }
  });
}

// Other templates: test/unit/lists/formats/package-check.test.ts.
describe('Names of various registries, with a URL template,', () => {
  const suite = useService(
    () => PACKAGES.map((entry) => ({ ...entry, url: '' })),
    () => ({ PACKAGE_URL_TEMPLATE: `${BASE}{+name}` }),
  );
  itListsThem(suite);
});

describe('Names of various registries', () => {
  const suite = useService(() => PACKAGES);
  itListsThem(suite);
});
