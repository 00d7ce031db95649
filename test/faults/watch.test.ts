import { cp, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import getPort from 'get-port';
import { datasetFile, packagesNamed, toCsv, type DatasetFile } from '../support/datasets.js';
import { inRunFolder } from '../support/run-folder.js';
import { removeRegistries } from '../support/registries.js';
import { environmentOf, newSlug, request } from '../support/service.js';
import { inShell, SpawnedCli } from '../support/spawn-cli.js';
import { waitFor } from '../support/wait-for.js';

/** What the build and the service read. */
const CLONED = [
  'src',
  'dev',
  'dist',
  'data',
  'mappings',
  'scripts',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
];
const RESPONSE = "jsonResponse({ ping: 'pong' }, NO_STORE)";
/** Of a build beside other tests. */
const BUILD_MS = 120_000;

/** Links the packages one by one: an installation in the clone would change those of this folder through a link to the whole. */
async function linkPackages(folder: string): Promise<void> {
  await mkdir(folder);
  for (const name of await readdir('node_modules'))
    await symlink(resolve('node_modules', name), join(folder, name));
}

describe('npm run dev', function () {
  this.timeout(8 * 60_000);
  const slug = newSlug();
  let clone: string;
  let dataset: DatasetFile;
  let url: string;
  let env: Record<string, string>;

  before(async () => {
    clone = inRunFolder('clone');
    await mkdir(clone);
    for (const path of CLONED)
      await cp(path, join(clone, path), { recursive: true, preserveTimestamps: true });
    await linkPackages(join(clone, 'node_modules'));
    dataset = await datasetFile(toCsv(packagesNamed(['alpha', 'beta'])));
    const port = String(await getPort());
    url = `http://127.0.0.1:${port}`;
    env = { ...environmentOf(slug), DATASET_URL: dataset.url, PORT: port };
  });

  after(async () => {
    await dataset.remove();
    await removeRegistries([slug]);
    await rm(clone, { recursive: true });
  });

  const start = () => new SpawnedCli('dev/start', env, ['--watch'], inShell(`cd '${clone}' && exec "$@"`));

  async function change(path: string, from: string, to: string): Promise<void> {
    const file = join(clone, 'src', path);
    const text = await readFile(file, 'utf8');
    expect(text).to.include(from);
    await writeFile(file, text.replace(from, to));
  }

  const ping = () =>
    request(`${url}/ping`).then(
      ({ body }) => body as unknown,
      () => undefined,
    );

  /** Waits until `/ping` has this response. */
  const pings = (expected: unknown) =>
    waitFor(
      async () => JSON.stringify(await ping()) === JSON.stringify(expected),
      JSON.stringify(expected),
      BUILD_MS,
    );

  it('serves the previous build until changed sources can be compiled', async () => {
    const program = start();
    await program.prints(/The API is at/, BUILD_MS);
    expect(await ping()).to.deep.equal({ ping: 'pong' });

    await change('routes/ping.ts', RESPONSE, 'jsonResponse(');
    await waitFor(() => program.stderr.includes('build` failed'), 'a failed build', BUILD_MS);
    expect(program.stderr).to.match(/\[ERROR\][^]+ping\.ts:\d+:\d+/);
    expect(await ping()).to.deep.equal({ ping: 'pong' });

    await change('web/index.html', '<title>', '<title>Changed ');
    await change('routes/ping.ts', 'jsonResponse(;', "jsonResponse({ ping: 'changed' }, NO_STORE);");
    await pings({ ping: 'changed' });
    expect(await (await fetch(url)).text()).to.contain('<title>Changed ');

    expect(await program.stop('SIGINT')).to.equal(0);
    expect(await ping()).to.equal(undefined);
  });
});
