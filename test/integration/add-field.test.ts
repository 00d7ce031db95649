import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { UNCACHED } from '../support/background-reader.js';
import { datasetFile, type DatasetFile } from '../support/datasets.js';
import { newFolder } from '../support/run-folder.js';
import { newSlug, type rebuildHere, type Service, type startService } from '../support/service.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/** The rows of the recipe: of the table of fields and of the files of indices. */
const [, ROW = '', LINE = ''] =
  /^## Add a field\n[^]*?```ts\n([^]*?)```[^]*?```json\n([^]*?)```/m.exec(
    readFileSync(join(PROJECT, 'CONTRIBUTING.md'), 'utf8'),
  ) ?? [];

const HEADER = 'package_no,name,version,url,license,weight';
const ROWS = [
  '1,lib-a,1.0,https://registry.example/lib-a,MIT,5',
  '2,lib-b,1.0,https://registry.example/lib-b,"GPL-2.0-only, ""or later""",7',
  '3,lib-c,1.0,https://registry.example/lib-c,,9',
  '4,lib-d,1.0,https://registry.example/lib-d,,0',
  '5,lib-e,1.0,https://registry.example/lib-e,,0',
];

const csv = (rows: string[]) => [HEADER, ...rows, ''].join('\n');

/** The first package with another license. */
const RELICENSED = csv(ROWS.map((row) => row.replace('MIT', 'ISC')));

/** Copies what runs in this process. The copy of `dist` is used only for the files of the page. */
function copyProject(): string {
  const folder = newFolder();
  for (const part of ['src', 'dev', 'mappings', 'package.json', 'test/support', 'test/fixtures'])
    cpSync(join(PROJECT, part), join(folder, part), { recursive: true });
  for (const part of ['data', 'dist', 'node_modules']) symlinkSync(join(PROJECT, part), join(folder, part));
  return folder;
}

/** Replaces the only place of a pattern. */
function edit(path: string, pattern: RegExp, replacement: (found: string) => string): void {
  const text = readFileSync(path, 'utf8');
  expect(text.match(new RegExp(pattern, 'gm'))).to.have.length(1);
  writeFileSync(path, text.replace(pattern, replacement));
}

describe('A field that was added to a copy of the project, as CONTRIBUTING.md says,', function () {
  this.timeout(60_000);
  const slug = newSlug();
  let folder: string;
  let dataset: DatasetFile;
  let service: Service;
  let support: { rebuildHere: typeof rebuildHere; startService: typeof startService };
  const variables = (env = {}) => ({ DATASET_URL: dataset.url, ...UNCACHED, ...env });
  const publish = async (content: string, env = {}): Promise<string> => {
    const before = await service.snapshot();
    await dataset.write(content);
    await support.rebuildHere(variables(env), slug, { force: true });
    await service.refresh();
    expect(await service.snapshot()).not.to.equal(before);
    return before;
  };
  const changesSince = async (since: string) =>
    (await service.get(`/changes?since=${since}`)).body.results as object[];

  before(async () => {
    folder = copyProject();
    const end = /^\} as const satisfies Record<string, Field>;$/m;
    edit(join(folder, 'src/snapshot/package-fields.ts'), end, (found) => ROW + found);
    for (const content of ['packages', 'changes'])
      edit(join(folder, `mappings/${content}.json`), /"properties": \{/, (found) => found + LINE);
    const version = /(?<=^export const MAPPING_VERSION = )\d+/m;
    edit(join(folder, 'src/snapshot/snapshot-meta.ts'), version, (found) => String(Number(found) + 1));
    const url = pathToFileURL(join(folder, 'test/support/service.ts')).href;
    support = (await import(url)) as typeof support;
    dataset = await datasetFile(csv(ROWS));
    await support.rebuildHere(variables(), slug, { force: true });
    service = await support.startService(variables(), slug);
  });

  after(async () => {
    await service.end();
    await dataset.remove();
  });

  it('is a documented member of entries whose package has a value', async () => {
    const { text } = await service.get('/search?q=lib-&limit=3');
    expect(text).to.include('/lib-a","license":"MIT","weight":5');
    expect(text).to.include('/lib-b","license":"GPL-2.0-only, \\"or later\\"","weight":7');
    expect(text).to.include('/lib-c","weight":9');
    const { Package, Change } = (await service.get('/openapi.json')).body.components.schemas;
    for (const schema of [Package, Change]) {
      expect(schema.properties.license).to.deep.equal({ type: 'string', minLength: 1 });
      expect(schema.required).not.to.include('license');
    }
  });

  it('is a column of /export, from which the same snapshot can be built', async () => {
    const exported = await service.get('/export');
    expect(exported.text).to.equal(csv(ROWS));
    expect((await service.get('/export?format=jsonl')).text.split('\n')[0]).to.include('"license":"MIT"');
    expect(await changesSince(await publish(exported.text))).to.deep.equal([]);
    expect((await service.get('/export')).text).to.equal(exported.text);
  });

  it('makes a package `updated` in /changes if it alone differs', async () => {
    const [change, ...others] = await changesSince(await publish(RELICENSED));
    expect(change).to.include({ change: 'updated', name: 'lib-a', previous_version: '1.0', license: 'ISC' });
    expect(others).to.deep.equal([]);
  });

  it('is a field for Kibana, in the packages and in the changes', async () => {
    const { elasticsearch, alias } = service;
    for (const index of [alias, `${alias}-changes-*`]) {
      const { fields } = await elasticsearch.fieldCaps({ index, fields: 'license' });
      expect(fields['license']?.['keyword']).to.include({ aggregatable: true });
      const { hits } = await elasticsearch.search({ index, query: { term: { license: 'ISC' } }, size: 9 });
      expect(hits.hits).to.have.length(1);
    }
  });

  it('is found by DATASET_JSON', async () => {
    const { text } = await service.get('/browse');
    const before = await publish(text, {
      DATASET_FORMAT: 'json',
      DATASET_JSON: 'items=results name=name version=version weight=weight license=license',
      PACKAGE_URL_TEMPLATE: 'https://registry.example/{name}',
    });
    const [first] = (await service.get('/browse')).body.results;
    expect(first).to.include({ name: 'lib-a', license: 'ISC', weight: 5 });
    expect(await changesSince(before)).to.deep.equal([]);
  });

  it('is checked as its line says', async () => {
    const tooLong = csv(ROWS.map((row) => row.replace('MIT', 'x'.repeat(257))));
    const reason = await publish(tooLong).catch((error: unknown) => (error as Error).message);
    expect(reason).to.include('line 2: license is longer than 256 bytes');
  });

  it('is absent everywhere if no package has a value', async () => {
    const without = ROWS.map((row) => row.replace(/(?<=\/lib-[a-e]),.*(?=,)/, ''));
    await publish([HEADER.replace(',license', ''), ...without, ''].join('\n'));
    expect((await service.get('/export')).text).not.to.include('license');
    expect((await service.get('/search?q=lib-')).text).not.to.include('license');
  });
});
