import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { run } from '../../../dev/run.js';
import { packagesNamed } from '../../support/datasets.js';
import { newFolder } from '../../support/run-folder.js';
import { useService } from '../../support/service.js';

const READER = fileURLToPath(new URL('reader.ts', import.meta.url));
const MODULES = fileURLToPath(new URL('../../../node_modules/', import.meta.url));

/** What the reader reads, in this order. */
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

const LINTER = '--package=@stoplight/spectral-cli@6.16.3';
/** The generator needs an earlier compiler than this project has. */
const GENERATOR = ['--package=openapi-typescript@7.13.0', '--package=typescript@5.9.3'];
const FETCH = 'openapi-fetch@0.17.0';

describe('/openapi.json', function () {
  // The first run downloads the tools.
  this.timeout(5 * 60_000);
  const packages = packagesNamed(['alphabet', 'alpha', 'beta', 'gamma']);
  const suite = useService(() => packages.slice(1));
  let cwd = '';

  before(async () => {
    await suite.publish(packages);
    cwd = newFolder();
    await writeFile(join(cwd, 'openapi.json'), (await suite.service.get('/openapi.json')).text);
  });

  it('has no warning of Spectral', async () => {
    // Whom to ask is up to the operator of a service.
    const ruleset = { extends: 'spectral:oas', rules: { 'info-contact': 'off' } };
    await writeFile(join(cwd, 'ruleset.json'), JSON.stringify(ruleset));
    const lint = ['spectral', 'lint', '--ruleset', 'ruleset.json', '--fail-severity', 'hint', 'openapi.json'];
    await run('npm', ['exec', '--yes', '--ignore-scripts', LINTER, '--', ...lint], { cwd });
  });

  it('makes a client in TypeScript that reads every response', async () => {
    await writeFile(join(cwd, 'package.json'), JSON.stringify({ type: 'module' }));
    await copyFile(READER, join(cwd, 'reader.ts'));
    const generate = ['openapi-typescript', 'openapi.json', '--output', 'schema.d.ts'];
    await run('npm', ['exec', '--yes', ...GENERATOR, '--', ...generate], { cwd });
    await run('npm', ['install', '--no-audit', '--no-fund', '--no-save', FETCH], { cwd });
    const strict = ['--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node'];
    const compile = [`${MODULES}typescript/bin/tsc`, ...strict, '--typeRoots', `${MODULES}@types`];
    await run(process.execPath, [...compile, 'reader.ts'], { cwd });
    const pages = PATHS.map(async (path) => (await suite.service.get(path)).body as unknown);
    const printed = await run('node', [join(cwd, 'reader.js'), suite.service.url]);
    expect(JSON.parse(printed)).to.deep.equal(await Promise.all(pages));
  });
});
