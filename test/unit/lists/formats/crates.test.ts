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

  it('joins the tables by their ids', async () => {
    const skipped: string[] = [];
    expect(await convertFrom(FILES, { maxBadRows: 1 }, skipped)).to.deep.equal([
      { name: 'a', package_no: '3', version: '0.1.0', weight: '7' },
      { name: 'c', package_no: '2', version: '', weight: '0' },
    ]);
    expect(skipped).to.deep.equal([
      'crates.csv: record 3: name has a line break: there may be a stray quote in this line',
    ]);
  });

  it('accepts any order of files', async () => {
    const moved = Object.entries(FILES).map(([name, text]) => [`./${name}`, text] as const);
    const files = Object.fromEntries([['x/other/crates.csv', 'no'], ...moved.reverse()]);
    const rows = await convertFrom(files, { maxBadRows: 1 });
    expect((rows as { name: string }[]).map(({ name }) => name).sort()).to.deep.equal(['a', 'c']);
  });
});
