import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { run } from '../../../dev/run.js';
import { packagesNamed } from '../../support/datasets.js';
import { useService } from '../../support/service.js';
import {
  buildGo,
  buildJava,
  buildTypeScript,
  generateClients,
  lintOpenApi,
  pythonWith,
} from '../../support/toolchains.js';

const fileOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** What each reader reads, in this order. */
const PATHS = [
  '/browse',
  '/browse?page=3000000000',
  '/search?q=alpha',
  '/search?q=alpha&sort=weight&limit=2',
  '/packages/alpha',
  '/lookup?name=alpha&name=none',
  '/similar?name=alpah',
  '/changes',
  '/stats',
  '/health',
];

/** Numbers that need more than 32 bits: the first three beyond signed and unsigned ones, and the largest. */
const NUMBERS = [2 ** 31, 3_000_000_000, 2 ** 32, Number.MAX_SAFE_INTEGER];

describe('Clients generated from /openapi.json', function () {
  // The first run downloads the generator, and compiles the standard library of Go.
  this.timeout(15 * 60_000);
  const packages = packagesNamed(['alphabet', 'alpha', 'beta', 'gamma']).map((entry, i) => ({
    ...entry,
    no: NUMBERS[i] as number,
  }));
  const suite = useService(() => packages.slice(1));
  let folder = '';
  let python = '';

  before(async () => {
    await suite.publish(packages);
    python = await pythonWith('clients', fileOf('requirements.txt'));
    folder = await mkdtemp(join(tmpdir(), 'clients-'));
    await writeFile(join(folder, 'openapi.json'), (await suite.service.get('/openapi.json')).text);
    await generateClients(python, folder, {
      go: { packageName: 'main' },
      python: { packageName: 'registry_client' },
      java: {
        invokerPackage: 'registry.client',
        apiPackage: 'registry.client.api',
        modelPackage: 'registry.client.model',
        library: 'okhttp-gson',
      },
    });
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** @param hasNulls whether the program prints members that are null. */
  async function expectPages(printed: string, hasNulls = true) {
    const parse = (text: string): unknown =>
      JSON.parse(text, (_key, value: unknown) => (hasNulls ? value : (value ?? undefined)));
    const pages = PATHS.map(async (path) => parse((await suite.service.get(path)).text));
    expect(parse(printed)).to.deep.equal(await Promise.all(pages));
    expect(printed).to.include(String(Number.MAX_SAFE_INTEGER));
  }

  it('are generated from a document without a warning of Spectral', () => lintOpenApi(folder));

  it('read numbers above 2^31 in Go', async () => {
    const client = join(folder, 'go');
    await copyFile(fileOf('reader.go'), join(client, 'reader.go'));
    await expectPages(await run(await buildGo(client), [suite.service.url]));
  });

  it('read numbers above 2^31 in Python', async () => {
    const reader = join(folder, 'python/reader.py');
    await copyFile(fileOf('reader.py'), reader);
    await expectPages(await run(python, ['-W', 'error', reader, suite.service.url]));
  });

  it('read numbers above 2^31 in TypeScript', async () => {
    await copyFile(fileOf('reader.ts'), join(folder, 'reader.ts'));
    await expectPages(await run('node', [await buildTypeScript(folder), suite.service.url]));
  });

  it('read numbers above 2^31 in Java', async () => {
    const client = join(folder, 'java');
    await copyFile(fileOf('Reader.java'), join(client, 'src/main/java/registry/client/Reader.java'));
    const classPath = await buildJava(client);
    const printed = await run('java', ['-cp', classPath, 'registry.client.Reader', suite.service.url]);
    await expectPages(printed, false);
  });
});
