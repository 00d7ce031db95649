import { rejects } from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { readDatasetConfig } from '../../../src/config/config.js';
import { assignNumbers, readNumbers, writeDataset } from '../../../src/lists/dataset-file.js';
import { bundledPackages, packagesNamed, toCsv } from '../../support/datasets.js';

const NEVER = new AbortController().signal;
/** An earlier dataset is read as a CSV without bad rows, whatever the new one is. */
const EXACT = readDatasetConfig({
  DATASET_FORMAT: 'jsonl',
  DATASET_URL: 'https://registry.example/list',
  DATASET_MAX_BAD_ROWS: '5',
});
const MARCH = new Date('2024-03-02T03:04:05.678Z');

describe('A dataset file', () => {
  let folder: string;
  let path: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'package-registry-search-file-'));
    path = join(folder, 'dataset.csv.gz');
  });

  afterEach(() => rm(folder, { recursive: true }));

  async function write(packages = packagesNamed(['a', 'b']), signal = new AbortController().signal) {
    const counts: number[] = [];
    const onRows = (rows: number) => void counts.push(rows);
    await writeDataset(path, packages, { date: MARCH, signal, onRows });
    return { bytes: await readFile(path), counts };
  }

  it('has all packages in the order of their numbers', async () => {
    const packages = packagesNamed(Array.from({ length: 2500 }, (_, i) => `name ${i}, "${i}"`));
    const { bytes, counts } = await write(packages.toReversed());
    expect(gunzipSync(bytes).toString()).to.equal(toCsv(packages));
    expect(counts).to.deep.equal([1000, 2000, 2500]);
    const weighted = packages.map((one, i) => ({ ...one, weight: i * 2 ** 40 }));
    expect(gunzipSync((await write(weighted)).bytes).toString()).to.equal(toCsv(weighted));
  });

  it('says that the disk is full', async () => {
    await writeFile(path, 'old');
    for (const count of [1, 100_000]) {
      await symlink('/dev/full', `${path}.${process.pid}.partial`);
      await rejects(write(packagesNamed(Array.from({ length: count }, (_, i) => `name ${i * 7919}`))), {
        message: 'ENOSPC: no space left on device, write',
      });
    }
    expect(await readFile(path, 'utf8')).to.equal('old');
    expect(await readdir(folder)).to.deep.equal(['dataset.csv.gz']);
  });

  it('stays as it was if writing is stopped or fails', async () => {
    await writeFile(path, 'old');
    await rejects(write(undefined, AbortSignal.abort()), { name: 'AbortError' });
    const onRows = () => {
      throw new Error('failed while writing');
    };
    const { signal } = new AbortController();
    const failing = writeDataset(path, packagesNamed(['a']), { date: MARCH, signal, onRows });
    await rejects(failing, { message: 'failed while writing' });
    expect(await readFile(path, 'utf8')).to.equal('old');
    expect(await readdir(folder)).to.deep.equal(['dataset.csv.gz']);
  });
});

describe('Numbers of packages', () => {
  let folder: string;
  before(async () => (folder = await mkdtemp(join(tmpdir(), 'package-registry-search-numbers-'))));
  after(() => rm(folder, { recursive: true }));

  function numbered(names: readonly string[], earlier: Record<string, number> = {}): string[] {
    const packages = packagesNamed(names);
    assignNumbers(packages, new Map(Object.entries(earlier)), 'exact');
    return packages.map(({ no, name }) => `${no} ${name}`);
  }

  it('are in the order of the names', () => {
    const sorted = ['B', 'a', 'a+', 'a-b', 'a.b', 'a1', 'b', 'é', '\u{1f680}', '\uff5e'];
    expect(numbered(sorted.toReversed())).to.deep.equal(sorted.map((name, i) => `${i + 1} ${name}`));
  });

  it('stay, while new names get the next ones after the largest', () => {
    const earlier = { c: 7, gone: 9, d: 2 };
    expect(numbered(['d', 'c', 'b', 'a'], earlier)).to.have.members(['2 d', '7 c', '10 a', '11 b']);
  });

  it('stay with names whose spelling has changed, by the name rule', async () => {
    const path = join(folder, 'spelled');
    await writeFile(path, 'package_no,name\n7,Zope.Interface\n2,b\n');
    const packages = packagesNamed(['a', 'zope_interface', 'B']);
    assignNumbers(packages, await readNumbers(path, readDatasetConfig({ NAME_RULE: 'pypi' }), NEVER), 'pypi');
    expect(packages.map(({ no, name }) => `${no} ${name}`)).to.deep.equal(['2 B', '8 a', '7 zope_interface']);
  });

  for (const [what, content, reason] of [
    ['without numbers', 'name,version,url\na,1,\n', 'the header has no column `package_no`'],
    ['with a duplicate name', 'package_no,name\n1,a\n2,a\n', 'line 3: name "a" is already on line 2'],
  ] as const) {
    it(`are not read from a dataset ${what}`, async () => {
      const path = join(folder, 'bad.csv');
      await writeFile(path, content);
      await rejects(readNumbers(path, EXACT, NEVER), { message: `${path}: ${reason}` });
    });
  }
});

describe('The bundled dataset', () => {
  it('has unique names, in the order of unique numbers', () => {
    const packages = bundledPackages();
    expect(new Set(packages.map(({ name }) => name)).size).to.equal(packages.length);
    expect(packages.every(({ no }, i) => no > (packages[i - 1]?.no ?? 0))).to.equal(true);
  });
});
