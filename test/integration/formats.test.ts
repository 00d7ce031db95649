import { expect } from 'chai';
import type { JsonPaths } from '../../src/config/json-paths.js';
import { listServer, type ListServer } from '../support/list-server.js';
import { EXAMPLES, type ListExample } from '../support/lists.js';
import { newSlug, rebuildHere, startService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

const TEMPLATE = 'https://registry.example/package/{+name}';

/** The first example of each format. */
const ONE_EACH = [...new Map([...EXAMPLES].reverse().map((example) => [example.format, example])).values()];

function jsonText({ items, name, version, weight, next }: JsonPaths): string {
  const paths = { items, name, version, weight, next: next?.path };
  return Object.entries(paths)
    .filter(([, path]) => path !== undefined && path.length > 0)
    .map(([key, path]) => `${key}=${path?.join('.')}`)
    .join(' ');
}

/** The entries that a service must have. */
function entriesOf({ expected: rows }: ListExample) {
  const hasWeights = rows.some(({ weight }) => weight !== undefined);
  const entries = rows.map((row, i) => ({
    no: Number(row['package_no'] ?? i + 1),
    name: row['name'] ?? '',
    version: row['version'] === undefined || row['version'] === '' ? 'latest' : row['version'],
    url:
      row['url'] ??
      TEMPLATE.replace(
        '{+name}',
        encodeURIComponent(row['name'] ?? '')
          .replace(/%2F/g, '/')
          .replace(/%40/g, '@'),
      ),
    ...(row['description'] !== undefined && { description: row['description'] }),
    ...(hasWeights && { weight: Number(row['weight']) }),
  }));
  return entries.sort((a, b) => a.no - b.no);
}

async function browseAll(service: Service): Promise<unknown[]> {
  const { body } = await service.get('/browse?limit=500');
  return body.results as unknown[];
}

for (const example of ONE_EACH) {
  describe(`A registry whose list has the format ${example.format}`, function () {
    this.timeout(60_000);
    let origin: ListServer;
    let env: Record<string, string>;
    let service: Service;

    before(async () => {
      origin = await listServer(example.answer);
      env = {
        DATASET_URL: `${origin.origin}/list`,
        DATASET_FORMAT: example.format,
        ...(example.paths === undefined ? {} : { DATASET_JSON: jsonText(example.paths) }),
        PACKAGE_URL_TEMPLATE: TEMPLATE,
      };
      const slug = newSlug();
      // The reader of crates needs a library, so the rebuild process builds it. That process bundles all readers.
      if (example.format !== 'crates') await rebuildHere(env, slug);
      service = await startService(env, slug);
      await waitFor(async () => (await service.snapshot()) !== '', 'the first build', 30_000);
    });

    after(async () => {
      await service.end();
      await origin.close();
    });

    it('serves its names, versions and numbers', async () => {
      const expected = entriesOf(example);
      expect(await browseAll(service)).to.deep.equal(expected);
      const { name } = expected[7] ?? expect.fail('too few');
      const { body } = await service.get(`/search?q=${encodeURIComponent(name)}`);
      expect(body.results[0]).to.deep.equal({ ...expected[7], rank: 0 });
    });

    it('builds nothing while the packages stay the same', async () => {
      await service.idle();
      expect(await rebuildHere(env, service.slug, { skipIf: 'unchanged' })).to.equal(undefined);
    });
  });
}
