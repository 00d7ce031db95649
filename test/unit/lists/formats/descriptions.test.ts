import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { DatasetFormat } from '../../../../src/config/dataset-format.js';
import { convert, useListServer, type Body } from '../../../support/list-server.js';
import { tar } from '../../../support/tar.js';

const bytes = (text: string) => Buffer.from(text, 'latin1');

/** A dump whose table of crates has these records. */
const dump = (crates: string) =>
  gzipSync(
    tar({
      'd/data/crates.csv': bytes(crates),
      'd/data/versions.csv': 'id,num\n',
      'd/data/default_versions.csv': 'crate_id,version_id\n',
      'd/data/crate_downloads.csv': 'crate_id,downloads\n',
    }),
  );

describe('A description', () => {
  const serve = useListServer();
  const descriptions = async (format: DatasetFormat, body: Body, maxBadRows = 0) => {
    const paths = { items: [], name: ['id'], description: ['about', 'short'] };
    const rows = await convert(format, (await serve(() => body)).url, { paths, maxBadRows });
    return typeof rows === 'string' ? rows : rows.map(({ description = '' }) => description);
  };

  const lists: [format: DatasetFormat, what: string, body: Body, expected: string[]][] = [
    ['csv', 'its column', bytes('description,name\n"a\r\n ""b""",x\n,y\n\xff,z\n'), ['a "b"', '', '\ufffd']],
    ['jsonl', 'its member', bytes('{"name":"x","description":"a\\nb"}\n{"name":"y","description":["a"]}\n{"name":"z","description":"\xff"}\n'), ['a b', '', '\ufffd']],
    ['json', 'the path in DATASET_JSON', bytes('[{"id":"x","about":{"short":"\xff"}},{"id":"y","about":5}]'), ['\ufffd', '']],
    ['json', 'the last of repeated names', '[{"id":"x","about":{"short":"a"}},{"id":"x","about":{"short":"b\\n"}}]', ['b']],
    ['debian', 'the first line of its field', bytes('Package: x\nVersion: 1\nDescription: \xff a\n b\n\nPackage: y\nVersion: 1\n'), ['\ufffd a', '']],
    ['debian', 'the stanza with the highest version', 'Package: x\nVersion: 2\nDescription: new\n\nPackage: x\nVersion: 1\nDescription: old\n', ['new']],
    ['crates', 'its column', dump('id,description,name\n1,"a\nb",x\n2,,y\n3,\xff,z\n'), ['a b', '', '\ufffd']],
    ['crates', 'the beginning of a long text', dump(`id,description,name\n1,a ${'b'.repeat(100_000)},x\n`), ['a…']],
    ['crates', 'nothing without its column', dump('id,name\n1,x\n'), ['']],
  ]; // prettier-ignore
  for (const [format, what, body, expected] of lists) {
    it(`is ${what} in ${format}`, async () => {
      expect(await descriptions(format, body)).to.deep.equal(expected);
    });
  }

  it('does not excuse invalid UTF-8 in other columns', async () => {
    const csv = bytes('name,note,description\nx,,a\ny,\xff,b\n\xff,,c\nz,,\xff\n');
    expect(await descriptions('csv', csv)).to.equal('line 3: not valid UTF-8');
    expect(await descriptions('csv', csv, 2)).to.deep.equal(['a', '\ufffd']);
    const line = bytes('{"name":"\xff","description":"a"}\n');
    expect(await descriptions('jsonl', line)).to.equal('line 1: not valid UTF-8');
  });
});
