import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { convert, useListServer, type ListOptions } from '../../../support/list-server.js';
import { tar } from '../../../support/tar.js';

const FILES = {
  'd/data/crates.csv': 'name,id\na,3\n"b ""x"",\n🚀",1\nc,2\n',
  'd/data/versions.csv': 'id,num\n10,0.1.0\n11,"0.2.0"\n12,9.0.0\n',
  'd/data/default_versions.csv': 'crate_id,version_id\n1,11\n3,10\n99,12\n',
  'd/data/crate_downloads.csv': 'crate_id,downloads\n3,7\n98,8\n',
};

describe('The format crates', () => {
  const serve = useListServer();
  const convertFrom = async (
    files: Record<string, string>,
    options: ListOptions = {},
    skipped: string[] = [],
  ) => convert('crates', (await serve(() => gzipSync(tar(files)))).url, options, skipped);

  it('joins the tables by their ids, and leaves out crates without a name', async () => {
    const skipped: string[] = [];
    expect(await convertFrom(FILES, { maxBadRows: 1 }, skipped)).to.deep.equal([
      { name: 'a', package_no: '3', version: '0.1.0', weight: '7' },
      { name: 'c', package_no: '2', version: '', weight: '0' },
    ]);
    expect(skipped).to.deep.equal([
      'crates.csv: record 3: name has a line break: there may be a stray quote in this line',
    ]);
  });

  it('accepts any order of files, and other folders', async () => {
    const moved = Object.entries(FILES).map(([name, text]) => [`./${name}`, text] as const);
    const files = Object.fromEntries([['x/other/crates.csv', 'no'], ...moved.reverse()]);
    const rows = await convertFrom(files, { maxBadRows: 1 });
    expect((rows as { name: string }[]).map(({ name }) => name).sort()).to.deep.equal(['a', 'c']);
  });

  for (const [what, files, reason] of [
    [
      'without a table',
      { 'd/data/versions.csv': undefined },
      'expected a dump of crates.io, but it has no data/versions.csv',
    ],
    [
      'without a column',
      { 'd/data/crates.csv': 'id,title\n1,a\n' },
      'crates.csv: expected a column `name` in its header',
    ],
    [
      'with a short record',
      { 'd/data/versions.csv': 'id,num\n1\n' },
      'versions.csv: record 2: 1 fields instead of 2',
    ],
    [
      'with a record that is cut off',
      { 'd/data/crates.csv': 'id,name\n1,a\n2,"b' },
      'crates.csv: record 3: cut off',
    ],
    [
      'with a record that is cut off in a column that is not read',
      { 'd/data/crates.csv': 'description,id,name\n,1,a\na pack' },
      'crates.csv: record 3: cut off',
    ],
    [
      'with a table that is empty',
      { 'd/data/crate_downloads.csv': '' },
      'crate_downloads.csv: expected a header',
    ],
    [
      'with invalid UTF-8',
      { 'd/data/crates.csv': Buffer.from('id,name\n1,\xff\n', 'latin1') as never },
      'crates.csv: record 2: not valid UTF-8',
    ],
    [
      'with a name of 100 KB',
      { 'd/data/crates.csv': `id,name\n1,${'x'.repeat(100_000)}\n` },
      'crates.csv: record 2: a value is longer than 65536 bytes',
    ],
  ] as [string, Record<string, string>, string][]) {
    it(`rejects a dump ${what}`, async () => {
      const all = Object.entries<string | undefined>({ ...FILES, ...files });
      expect(
        await convertFrom(
          Object.fromEntries(all.filter(([, text]) => text !== undefined)) as Record<string, string>,
        ),
      ).to.equal(reason);
    });
  }

  it('rejects an archive that is something else, damaged, or cut off', async () => {
    const archive = tar(FILES);
    const damaged = Buffer.from(archive).fill(1, 1100, 1200);
    for (const body of [
      'name\n'.repeat(500),
      archive.subarray(0, 1700),
      damaged,
      gzipSync(archive).subarray(0, -9),
    ]) {
      const outcome = await convert('crates', (await serve(() => body)).url);
      expect(outcome).to.match(/^(expected a tar archive, complete and undamaged$|the gzip is cut off)/);
    }
  });
});
