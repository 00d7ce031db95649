import { readdir, readFile, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { packagesNamed } from '../support/datasets.js';
import { followNext } from '../support/follow-next.js';
import { listServer, LOGIN_PAGE, type ListServer } from '../support/list-server.js';
import { inRunFolder } from '../support/run-folder.js';
import { keepSecret } from '../support/secret-scanner.js';
import { removeRegistries } from '../support/registries.js';
import { environmentOf, newSlug, request, useService } from '../support/service.js';
import { runCommand, SpawnedCli } from '../support/spawn-cli.js';

const TOKEN = keepSecret('hush-token-of-an-example');

/** The names of packages in pages of an array, as GitLab sends them: with `Link`. */
const GITLAB_PAGES = [
  [
    { id: 1, name: '@acme/app', version: '1.0.0' },
    { id: 2, name: 'lib', version: '0.1.0' },
  ],
  [{ id: 3, name: '@acme/app', version: '1.1.0' }],
];

/** The scripts, a registry that each of them can read, and what is served then. */
const SCRIPTS: {
  script: string;
  env?: Record<string, string>;
  authorization?: string;
  answer: Parameters<typeof listServer>[0];
  /** Without what precedes the path of the URLs. */
  served: Omit<PackageEntry, 'no'>[];
  pages: number;
}[] = [
  {
    script: 'company-python.sh',
    authorization: `Bearer ${TOKEN}`,
    answer: ({ pathname }) =>
      pathname === '/simple/'
        ? JSON.stringify({
            meta: { 'api-version': '1.0' },
            projects: [{ name: 'Acme.Tools' }, { name: 'acme-web' }],
          })
        : undefined,
    served: [
      { name: 'Acme.Tools', version: 'latest', url: '/simple/Acme.Tools/' },
      { name: 'acme-web', version: 'latest', url: '/simple/acme-web/' },
    ],
    pages: 1,
  },
  {
    script: 'npm.sh',
    answer: ({ pathname, searchParams }) => {
      if (pathname !== '/_all_docs') return undefined;
      const start = JSON.parse(searchParams.get('startkey') ?? '""') as string;
      const ids = ['@acme/app', '_design/app', 'left-pad', 'redis'].filter((id) => id >= start).slice(0, 2);
      return JSON.stringify({ rows: ids.map((id) => ({ id, key: id, value: { rev: '1' } })) });
    },
    served: [
      { name: '@acme/app', version: 'latest', url: '/package/@acme/app' },
      { name: 'left-pad', version: 'latest', url: '/package/left-pad' },
      { name: 'redis', version: 'latest', url: '/package/redis' },
    ],
    // Each begins with the last name of the one before; the last one has only that.
    pages: 4,
  },
  {
    script: 'gitlab.sh',
    env: { GROUP: 'acme' },
    authorization: `Bearer ${TOKEN}`,
    answer:
      ({ pathname, searchParams }) =>
      (response) => {
        if (pathname !== '/api/v4/groups/acme/packages') return response.writeHead(404).end();
        const page = Number(searchParams.get('page') ?? 1);
        searchParams.set('page', String(page + 1));
        const links = page === 1 ? { Link: `<${pathname}?${searchParams.toString()}>; rel="next"` } : {};
        return response.writeHead(200, links).end(JSON.stringify(GITLAB_PAGES[page - 1]));
      },
    served: [
      { name: '@acme/app', version: '1.1.0', url: '/groups/acme/-/packages?search[]=%40acme%2Fapp' },
      { name: 'lib', version: '0.1.0', url: '/groups/acme/-/packages?search[]=lib' },
    ],
    pages: 2,
  },
];

describe('The examples', function () {
  this.timeout(60_000);
  const slugs: string[] = [];
  after(() => removeRegistries(slugs));

  it('are all run by these tests', async () => {
    const tested = [...SCRIPTS.map(({ script }) => script), 'mirror-names.mjs', 'missing-components.mjs'];
    expect(await readdir('examples')).to.have.members(tested);
  });

  for (const { script, env, authorization, answer, served, pages } of SCRIPTS) {
    it(`examples/${script} serves the names of its registry`, async () => {
      const origin: ListServer = await listServer((url, headers) =>
        headers.authorization === authorization ? answer(url, headers) : LOGIN_PAGE,
      );
      const slug = newSlug();
      slugs.push(slug);
      // With a slash, as people copy addresses from their browsers.
      const address = `${origin.origin}/`;
      const variables = { REGISTRY: address, WEBSITE: address, TOKEN, PORT: '0', ...env };
      const program = new SpawnedCli('', { ...environmentOf(slug), ...variables }, [], () => [
        'sh',
        `examples/${script}`,
      ]);
      try {
        const [, url = ''] = await program.prints(/The API is at (\S+),/, 40_000);
        const { results } = (await request(`${url}/browse`)).body as { results: PackageEntry[] };
        const expected = served.map((entry) => ({ ...entry, url: origin.origin + entry.url }));
        expect(results.map(({ name, version, url }) => ({ name, version, url }))).to.deep.equal(expected);
        expect(origin.requests.map(({ headers }) => headers.authorization)).to.deep.equal(
          Array.from({ length: pages }, () => authorization),
        );
      } finally {
        expect(await program.stop('SIGINT')).to.equal(0);
        await origin.close();
      }
    });
  }
});

describe('examples/missing-components.mjs', function () {
  this.timeout(60_000);
  const suite = useService(
    () => packagesNamed(['@types/node', 'redis']),
    () => ({ PURL_TYPE: 'npm' }),
  );

  async function missingIn(bom: object) {
    const file = inRunFolder('bom.json');
    await writeFile(file, JSON.stringify(bom));
    const { code, stdout } = await runCommand('', {}, [suite.service.url, 'npm', file], (command) => [
      process.execPath,
      'examples/missing-components.mjs',
      ...command.slice(-3),
    ]);
    return { code, lines: stdout.trim().split('\n') };
  }

  it('lists the components of this type that the registry does not have', async () => {
    const inner = [{ purl: 'pkg:npm/lost@1?arch=x' }, { purl: 'pkg:npm/redis@4' }, { name: 'no purl' }];
    const many = Array.from({ length: 120 }, () => ({ purl: 'pkg:npm/redis@5' }));
    const components = [
      { purl: 'pkg:npm/%40types/node@22', components: inner },
      { purl: 'pkg:pypi/x' },
      ...many,
    ];
    expect(await missingIn({ components })).to.deep.equal({ code: 1, lines: ['pkg:npm/lost@1'] });
  });

  it('says that all exist', async () => {
    const components = [{ purl: 'pkg:npm/redis@4' }];
    expect(await missingIn({ components })).to.deep.equal({ code: 0, lines: ['all 1 components exist'] });
  });
});

describe('examples/mirror-names.mjs', function () {
  this.timeout(60_000);
  const named = (from: number, to: number) =>
    packagesNamed(Array.from({ length: to }, (_, i) => `name-${i}`)).slice(from);
  const suite = useService(
    () => named(0, 3000),
    () => ({ CHANGES_RETENTION: '1' }),
  );
  let file: string;
  let between: DatasetServer;
  /** What the script has asked for. */
  const asked: string[] = [];
  /** A status instead of the service's response; 0 is none. */
  let fault: (path: string) => number | undefined;

  before(async () => {
    file = inRunFolder('names.json');
    between = await datasetServer((incoming, response) => {
      const path = incoming.url ?? '';
      asked.push(path);
      const status = fault(path);
      if (status === 0) response.destroy();
      else if (status !== undefined)
        response.writeHead(status, status === 500 ? {} : { 'Retry-After': '1' }).end();
      else void forward(path, response);
    });
  });
  beforeEach(() => {
    asked.length = 0;
    fault = () => undefined;
  });
  after(() => between.close());

  async function forward(path: string, response: ServerResponse): Promise<void> {
    const { status, headers, text } = await suite.service.get(path);
    for (const name of ['X-Snapshot', 'Link', 'Retry-After']) {
      const value = headers.get(name);
      if (value !== null) response.setHeader(name, value);
    }
    response.writeHead(status).end(text);
  }

  const run = () =>
    runCommand('', {}, [`${new URL(between.url).origin}/`, file], (command) => [
      process.execPath,
      'examples/mirror-names.mjs',
      ...command.slice(-2),
    ]);
  const mirrored = async () => {
    const { snapshot, names } = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
    return { snapshot, names: [...(names as string[])].sort() };
  };

  /** Runs the script, after which the file has the served names. */
  async function expectMirrored(): Promise<void> {
    const { code, stderr } = await run();
    expect(code, stderr).to.equal(0);
    const pages = await followNext(suite.service, '/browse?limit=500');
    const names = pages.flatMap(({ body }) => (body.results as PackageEntry[]).map(({ name }) => name));
    expect(await mirrored()).to.deep.equal({
      snapshot: await suite.service.snapshot(),
      names: names.sort(),
    });
  }
  const askedFor = (endpoint: string) => asked.filter((path) => path.startsWith(endpoint)).length;

  it('reads the whole list in pages at first, waiting if it is told to', async () => {
    const refused = [429, 503];
    fault = (path) => (path.includes('page=2') ? refused.shift() : undefined);
    await expectMirrored();
    expect(askedFor('/browse')).to.equal(6 + 2);
  });

  it('reads only changes after a rebuild, even if a run was interrupted', async () => {
    await suite.publish(named(600, 3600));
    const before = await readFile(file, 'utf8');
    fault = (path) => (path.includes('after=') ? 0 : undefined);
    expect((await run()).code).to.equal(1);
    expect(await readFile(file, 'utf8')).to.equal(before);
    // A run that was killed while it wrote.
    await writeFile(`${file}.new`, before.slice(0, 1000));
    fault = () => undefined;
    asked.length = 0;
    await expectMirrored();
    expect([askedFor('/changes'), askedFor('/browse')]).to.deep.equal([2, 0]);
  });

  it('reads the whole list again if the service no longer knows the changes, or the snapshot of a page', async () => {
    await suite.publish(named(700, 3600));
    await suite.publish(named(700, 3700));
    let isFirst = true;
    fault = (path) => {
      if (!isFirst || !path.includes('page=3')) return undefined;
      isFirst = false;
      return 410;
    };
    await expectMirrored();
    expect([askedFor('/changes'), askedFor('/browse')]).to.deep.equal([1, 3 + 6]);
  });

  it('fails with the reason if the service or its own file cannot be read', async () => {
    fault = () => 500;
    const broken = await run();
    expect(broken.code).to.equal(1);
    expect(broken.stderr).to.match(/\/changes\S+: 500/);
    await writeFile(file, '{');
    expect((await run()).code).to.equal(1);
    expect(await readFile(file, 'utf8')).to.equal('{');
  });
});
