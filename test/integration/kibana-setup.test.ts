import { expect } from 'chai';
import { aliasOf } from '../../src/snapshot/index-names.js';
import { savedObjects, type SavedObject } from '../support/kibana-lens.js';
import { level, NOT_READY, withKibana } from '../support/kibana-server.js';
import { keepSecret } from '../support/secret-scanner.js';
import { runCommand } from '../support/spawn-cli.js';

const AVAILABLE = level(200, 'available');
const API_KEY = keepSecret('kibana-api-key-change-me');

// What it does with each response of Kibana: test/unit/clients/kibana.test.ts.
describe('npm run kibana:setup', () => {
  /** Runs the command with such a server. */
  const run = (env: Record<string, string>, statuses = [AVAILABLE], imported?: typeof AVAILABLE) =>
    withKibana(statuses, imported, async (url, imports) => ({
      ...(await runCommand('cli/kibana-setup', { KIBANA_URL: url, ...env })),
      imports,
    }));

  it('reports the reason for waiting, and imports the objects unchanged', async () => {
    const { code, stdout, stderr, imports } = await run({}, [NOT_READY, AVAILABLE]);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    expect(stdout).to.match(
      /^Waiting: Kibana at http:\S+ reports no status yet \(503\)\nKibana now has the dashboard registry-packages: 9 objects imported\.\n$/,
    );
    expect(imports.map(({ objects }) => objects)).to.deep.equal([savedObjects()]);
    expect(imports[0]?.headers).to.not.have.property('authorization');
  });

  // The second slug begins with the alias of the default one, and ends like one of its objects.
  for (const slug of ['pub-dev_2', 'registry-packages-total']) {
    it(`gives each registry its own objects, which are equal in each run: ${slug}`, async () => {
      const { stdout, imports } = await run({ REGISTRY_SLUG: slug, KIBANA_API_KEY: API_KEY });
      expect(stdout).to.contain(`the dashboard ${aliasOf(slug)}:`);
      expect(imports[0]?.headers.authorization).to.equal(`ApiKey ${API_KEY}`);
      const text = JSON.stringify(savedObjects()).replaceAll(aliasOf('registry'), aliasOf(slug));
      const objects = JSON.parse(text) as SavedObject[];
      expect(imports.map((request) => request.objects)).to.deep.equal([objects]);
      const ids = objects.map(({ id }) => id);
      expect(ids.filter((id) => savedObjects().some((object) => object.id === id))).to.deep.equal([]);
      for (const { references } of objects) expect(ids).to.include.members(references.map(({ id }) => id));
    });
  }

  it('fails in one line, without the key', async () => {
    const { code, stderr } = await run({ KIBANA_API_KEY: API_KEY }, [AVAILABLE], {
      status: 403,
      body: `{"message":"${API_KEY}"}`,
    });
    expect(code).to.equal(1);
    expect(stderr)
      .to.match(/^Kibana responded to the import with 403: .*\n$/)
      .and.not.contain(API_KEY);
  });
});
