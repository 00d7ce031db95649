import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { DatasetFormat } from '../../../../src/config/dataset-format.js';
import { DATASET_FORMATS } from '../../../../src/config/dataset-format.js';
import type { JsonPaths } from '../../../../src/config/json-paths.js';
import { convert, useListServer } from '../../../support/list-server.js';
import { tar } from '../../../support/tar.js';

const LONG = 'x'.repeat(513);
const MISSING = 'name is not a string: it is missing';
const TOO_LONG = 'name is longer than 512 bytes';
const NOT_UTF8 = 'not valid UTF-8';
const bytes = (text: string) => Buffer.from(text, 'latin1');
const dump = (crates: string | Buffer) =>
  gzipSync(
    tar({
      'd/data/crates.csv': crates,
      'd/data/versions.csv': 'id,num\n',
      'd/data/default_versions.csv': 'crate_id,version_id\n',
      'd/data/crate_downloads.csv': 'crate_id,downloads\n1,3\n2,3\n3,3\n',
    }),
  );
const simple = (bad: string) =>
  `{"meta":{"api-version":"1.0"},"projects":[{"name":"a"},${bad},{"name":"c"}]}`;
const npm = (bad: string) => `{"total_rows":3,"rows":[{"id":"a"},${bad},{"id":"c"}]}`;
const stanzas = (bad: string) => `Package: a\nVersion: 1\n\n${bad}\n\nPackage: c\nVersion: 1\n`;

/** Lists of a, a bad package, and c. */
const LISTS: [format: DatasetFormat, list: string | Buffer, reason: string, paths?: JsonPaths][] = [
  ['csv', 'name,version\na,1\n,1\nc,1\n', 'line 3: name is empty'],
  ['csv', `name\na\n${LONG}\nc\n`, `line 3: ${TOO_LONG}`],
  ['csv', bytes('name\na\n\xff\nc\n'), `line 3: ${NOT_UTF8}`],
  ['jsonl', '{"name":"a"}\n{"version":"1"}\n{"name":"c"}\n', `line 2: ${MISSING}`],
  ['jsonl', '{"name":"a"}\n\n{"name":"b","version":{}}\n{"name":"c"}\n', 'line 3: version is neither a string nor a number: "{}"'],
  ['jsonl', `{"name":"a"}\n{"name":"${LONG}"}\n{"name":"c"}\n`, `line 2: ${TOO_LONG}`],
  ['jsonl', bytes('{"name":"a"}\n{"name":"\xff"}\n{"name":"c"}\n'), `line 2: ${NOT_UTF8}`],
  ['jsonl', '{"name":"a"}\n{"name":\n{"name":"c"}\n', 'line 2: expected one JSON object a line: "{\\"name\\":"'],
  ['lines', 'a\nb 1 2\nc\n', 'line 2: expected a name, or a name and a version'],
  ['lines', `a\n${LONG}\nc\n`, `line 2: ${TOO_LONG}`],
  ['lines', `a\nb ${LONG}\nc\n`, 'line 2: version is longer than 256 bytes'],
  ['lines', bytes('a\n\xff\nc\n'), `line 2: ${NOT_UTF8}`],
  ['json', '["a",7,"c"]', 'page 1: item 1: name is not a string: "7"'],
  ['json', '[{"n":"a"},{},{"n":"c"}]', `page 1: item 1: ${MISSING}`, { items: [], name: ['n'] }],
  ['json', '[{"n":"a","v":1},{"n":"b","v":[]},{"n":"c"}]', 'page 1: item 1: version is neither a string nor a number: "[]"', { items: [], name: ['n'], version: ['v'] }],
  ['json', '[{"n":"a","w":1},{"n":"b","w":-1},{"n":"c","w":2}]', 'page 1: item 1: weight "-1" is not a number from 0 to 9007199254740991 in digits without leading zeros', { items: [], name: ['n'], weight: ['w'] }],
  ['json', bytes('["a","\xff","c"]'), `page 1: item 1: ${NOT_UTF8}`],
  ['pypi', simple('{}'), `projects[1]: ${MISSING}`],
  ['pypi', simple(`{"name":"${LONG}"}`), `projects[1]: ${TOO_LONG}`],
  ['pypi', bytes(simple('{"name":"\xff"}')), `projects[1]: ${NOT_UTF8}`],
  ['pypi', `<html><a href="a/">a</a><a href="${LONG}/">${LONG}</a><a href="c/">c</a></html>`, `link 2: ${TOO_LONG}`],
  ['pypi', bytes('<html><a href="a/">a</a><a href="\xff/">\xff</a><a href="c/">c</a></html>'), `link 2: ${NOT_UTF8}`],
  ['npm', npm('{"key":"b"}'), `page 1: rows[1]: ${MISSING}`],
  ['npm', npm(`{"id":"${LONG}"}`), `page 1: rows[1]: ${TOO_LONG}`],
  ['npm', bytes(npm('{"id":"\xff"}')), `page 1: rows[1]: ${NOT_UTF8}`],
  ['crates', dump(`id,name\n1,a\n2,${LONG}\n3,c\n`), `crates.csv: record 3: ${TOO_LONG}`],
  ['crates', dump('id,name\n1,a\n2\n3,c\n'), 'crates.csv: record 3: 1 fields instead of 2'],
  ['crates', dump(bytes('id,name\n1,a\n2,\xff\n3,c\n')), `crates.csv: record 3: ${NOT_UTF8}`],
  ['rubygems', '---\na 1 x\nb one x\nc 1 x\n', 'line 3: expected a name, versions and a checksum: "b one x"'],
  ['rubygems', `---\na 1 x\n${LONG} 1 x\nc 1 x\n`, `line 3: ${TOO_LONG}`],
  ['rubygems', bytes('a 1 x\n\xff 1 x\nc 1 x\n'), `line 2: ${NOT_UTF8}`],
  ['packagist', '{"packageNames":["a",7,"c"]}', 'packageNames[1]: name is not a string: "7"'],
  ['packagist', `{"packageNames":["a","${LONG}","c"]}`, `package 2: ${TOO_LONG}`],
  ['packagist', bytes('{"packageNames":["a","\xff","c"]}'), `packageNames[1]: ${NOT_UTF8}`],
  ['debian', stanzas('Version: 1'), `line 4: ${MISSING}`],
  ['debian', stanzas('Package: b'), 'line 4: the stanza of "b" has no Version'],
  ['debian', stanzas(`Package: ${LONG}\nVersion: 1`), `line 4: ${TOO_LONG}`],
  ['debian', bytes(stanzas('Package: \xff\nVersion: 1')), `line 4: ${NOT_UTF8}`],
]; // prettier-ignore

describe('A bad package', () => {
  const serve = useListServer();

  for (const format of DATASET_FORMATS) {
    it(`of ${format} rejects the list, or is one row that DATASET_MAX_BAD_ROWS allows`, async () => {
      const lists = LISTS.filter(([one]) => one === format);
      expect(lists.length).to.be.greaterThan(1);
      for (const [, list, reason, paths = { items: [] }] of lists) {
        const { origin } = await serve(({ searchParams }) =>
          searchParams.has('startkey') ? '{"rows":[{"id":"c"}]}' : list,
        );
        const url = `${origin}/list`;
        expect(await convert(format, url, { paths })).to.equal(reason);
        const skipped: string[] = [];
        const rows = await convert(format, url, { paths, maxBadRows: 1 }, skipped);
        expect(skipped).to.deep.equal([reason]);
        expect(rows, reason).to.be.an('array');
        const names = (rows as { name: string }[]).map(({ name }) => name);
        expect(names, reason).to.deep.equal(['a', 'c']);
      }
    });
  }

  it('is not one of the text of a field that is not used', async () => {
    for (const [format, list] of [
      ['jsonl', '{"name":"a","note":"\xff"}\n'],
      ['json', '[{"n":"a","note":"\xff"}]'],
      ['npm', '{"total_rows":1,"rows":[{"id":"a","note":"\xff"}]}'],
      ['debian', 'Package: a\nMaintainer: \xff\nVersion: 1\n'],
      ['crates', dump(bytes('id,name,note\n1,a,\xff\n'))],
    ] as const) {
      const { origin } = await serve(() => (typeof list === 'string' ? bytes(list) : list));
      const paths = format === 'json' ? { items: [], name: ['n'] } : undefined;
      const rows = await convert(format, `${origin}/list`, { ...(paths && { paths }) });
      expect(
        (rows as { name: string }[]).map(({ name }) => name),
        format,
      ).to.deep.equal(['a']);
    }
  });

  it('is counted once if its page is read twice', async () => {
    const long = JSON.stringify([7, ...Array.from({ length: 20_000 }, (_, i) => `name-${i}`)]);
    let isFirst = true;
    const { origin } = await serve(() => (response) => {
      response.writeHead(200, { 'Content-Length': long.length });
      if (isFirst) response.write(long.slice(0, 200_000), () => response.destroy());
      else response.end(long);
      isFirst = false;
    });
    const skipped: string[] = [];
    expect(await convert('json', `${origin}/list`, { maxBadRows: 1 }, skipped)).to.have.length(20_000);
    expect(skipped).to.deep.equal(['page 1: item 0: name is not a string: "7"']);
  });

  it('is no error, but all items are, if none has a configured member', async () => {
    const { origin } = await serve(() => '[{"n":"a","v":null},{"n":"b"}]');
    const read = (paths: JsonPaths) => convert('json', `${origin}/list`, { paths });
    expect(await read({ items: [], name: ['n'], version: ['v'] })).to.have.length(2);
    for (const path of [['x'], ['v', 'no']]) {
      expect(await read({ items: [], name: ['n'], version: path })).to.equal(
        `no item has \`${path.join('.')}\` (DATASET_JSON)`,
      );
    }
  });
});
