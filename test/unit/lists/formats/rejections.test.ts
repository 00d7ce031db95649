import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { DatasetFormat } from '../../../../src/config/dataset-format.js';
import { DATASET_FORMATS } from '../../../../src/config/dataset-format.js';
import type { JsonPaths } from '../../../../src/config/json-paths.js';
import { convert, cutOff, inTurn, LOGIN_PAGE, useListServer } from '../../../support/list-server.js';
import { tar } from '../../../support/tar.js';

const LONG = 'x'.repeat(513);
const MISSING = 'name is not a string: it is missing';
const TOO_LONG = 'name is longer than 512 bytes';
const NOT_UTF8 = 'not valid UTF-8';
const bytes = (text: string) => Buffer.from(text, 'latin1');
const TABLES = {
  crates: 'id,name\n1,a\n',
  versions: 'id,num\n',
  default_versions: 'crate_id,version_id\n',
  crate_downloads: 'crate_id,downloads\n1,3\n2,3\n3,3\n',
};
/** A dump with some of its tables replaced, or left out if they are undefined. */
const archive = (tables: Partial<Record<keyof typeof TABLES, string | Buffer | undefined>>) => {
  const all = Object.entries({ ...TABLES, ...tables }).filter(([, table]) => table !== undefined);
  return tar(Object.fromEntries(all.map(([name, table]) => [`d/data/${name}.csv`, table ?? ''])));
};
const dump = (crates: string | Buffer) => gzipSync(archive({ crates }));
const simple = (bad: string) =>
  `{"meta":{"api-version":"1.0"},"projects":[{"name":"a"},${bad},{"name":"c"}]}`;
const npm = (bad: string) => `{"total_rows":3,"rows":[{"id":"a"},${bad},{"id":"c"}]}`;
const stanzas = (bad: string) => `Package: a\nVersion: 1\n\n${bad}\n\nPackage: c\nVersion: 1\n`;

/** Lists of a, a bad package, and c. */
const BAD_PACKAGES: [format: DatasetFormat, list: string | Buffer, reason: string, paths?: JsonPaths][] = [
  ['csv', 'name,version\na,1\n,1\nc,1\n', 'line 3: name is empty'],
  ['csv', bytes('name\na\n\xff\nc\n'), `line 3: ${NOT_UTF8}`],
  ['jsonl', '{"name":"a"}\n{"version":"1"}\n{"name":"c"}\n', `line 2: ${MISSING}`],
  ['jsonl', '{"name":"a"}\n\n{"name":"b","version":{}}\n{"name":"c"}\n', 'line 3: version is neither a string nor a number: "{}"'],
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
  ['pypi', bytes(simple('{"name":"\xff"}')), `projects[1]: ${NOT_UTF8}`],
  ['pypi', `<html><a href="a/">a</a><a href="${LONG}/">${LONG}</a><a href="c/">c</a></html>`, `link 2: ${TOO_LONG}`],
  ['pypi', bytes('<html><a href="a/">a</a><a href="\xff/">\xff</a><a href="c/">c</a></html>'), `link 2: ${NOT_UTF8}`],
  ['npm', npm('{"key":"b"}'), `page 1: rows[1]: ${MISSING}`],
  ['npm', bytes(npm('{"id":"\xff"}')), `page 1: rows[1]: ${NOT_UTF8}`],
  ['crates', dump('id,name\n1,a\n2\n3,c\n'), 'crates.csv: record 3: 1 fields instead of 2'],
  ['crates', dump(bytes('id,name\n1,a\n2,\xff\n3,c\n')), `crates.csv: record 3: ${NOT_UTF8}`],
  ['rubygems', '---\na 1 x\nb one x\nc 1 x\n', 'line 3: expected a name, versions and a checksum: "b one x"'],
  ['rubygems', bytes('a 1 x\n\xff 1 x\nc 1 x\n'), `line 2: ${NOT_UTF8}`],
  ['packagist', '{"packageNames":["a",7,"c"]}', 'packageNames[1]: name is not a string: "7"'],
  ['packagist', `{"packageNames":["a","${LONG}","c"]}`, `package 2: ${TOO_LONG}`],
  ['packagist', bytes('{"packageNames":["a","\xff","c"]}'), `packageNames[1]: ${NOT_UTF8}`],
  ['debian', stanzas('Version: 1'), `line 4: ${MISSING}`],
  ['debian', stanzas('Package: b'), 'line 4: the stanza of "b" has no Version'],
  ['debian', bytes(stanzas('Package: \xff\nVersion: 1')), `line 4: ${NOT_UTF8}`],
]; // prettier-ignore

const page = (...ids: string[]) => JSON.stringify({ total_rows: 9, rows: ids.map((id) => ({ id })) });
const html = (body: string) => `<!DOCTYPE html><html><body>${body}</body></html>`;
const stanza = 'Package: a\nVersion: 1\n';
const base64 = (text: string) => Buffer.from(text, 'base64');
/** A stanza by `xz --lzma2=dict=65MiB`, `--delta` and `--check=sha256`, and one that is complete, by xz 5.4 at level 9. */
const XZ_65 = base64('/Td6WFoAAATm1rRGAgAhAR0AAAB1qOR0AQAVUGFja2FnZTogYQpWZXJzaW9uOiAxCgAAAHiqwInbgPEcAAEuFlYJVd8ftvN9AQAAAAAEWVo='); // prettier-ignore
const XZ_DELTA = base64('/Td6WFoAAATm1rRGAgEDAQAhARBMhacHAQAVUBECCPYG/tXmQalMDw0B9gb/zOYR2QAAAHiqwInbgPEcAAEuFlYJVd8ftvN9AQAAAAAEWVo='); // prettier-ignore
const XZ_SHA256 = base64('/Td6WFoAAArh+wyhAgAhARAAAACocI6GAQAVUGFja2FnZTogYQpWZXJzaW9uOiAxCgAAAC7TJxgz89/Kmo68FfqaYxo65nJ7R5rRrLh/V/Tn6vX7AAFGFvnocXIYm0uaAQAAAAAKWVo='); // prettier-ignore
const XZ = base64('/Td6WFoAAAFpIt42AgAhARwAAAAQz1jM4AA2ADJdACgYSGbb2jCF/hbfnAHb6cJQiWNKfcrsR1LRk0GpAmkcRajPSF9na/+JL3QCibiVhAAAAAAAbdg+nAABSjert62SkEKZDQEAAAAAAVla'); // prettier-ignore
const next: JsonPaths = { items: ['i'], next: { path: ['next'], parameter: undefined } };
const byName: JsonPaths = { items: [], name: ['n'] };
const NO_ROWS = 'page 2: expected a page of _all_docs: it has no array `rows`';
const NO_ITEMS = 'page 1: expected an array or map at `i` (DATASET_JSON)';
const NO_INDEX = 'expected a Simple index: `meta.api-version` 1.x and an array `projects`';
const NO_LIST = 'the repository has no list of its packages, only';
const LEADS_TO = 'an address in the document leads to';
const BAD_XZ =
  'the xz is cut off, damaged or not supported (`xz -9` is): get_next_output failed with error code';
const NO_GEM = 'expected a name, versions and a checksum:';
const CUT_OFF = 'does not end with a line end, so the list may be cut off';
const NO_NUMBER = 'package_no "" is not a number from 1 to 9007199254740991 in digits without leading zeros';

/** Documents in the order in which they are asked for: pages of npm and json, indexes of debian. ORIGIN is that of the server. */
const REJECTED: [format: DatasetFormat, documents: (string | Buffer | undefined)[], reason: string, paths?: JsonPaths][] = [
  ['lines', ['a\n\nb'], `line 3: ${CUT_OFF}`],
  ['lines', ['\n[1]\n'], 'line 2: expected a name, or a name and a version'],
  ['lines', ['\n \n'], 'the list has no packages'],
  ['jsonl', ['{"name":"a\\ud800"}'], 'line 1: name has half a surrogate pair: "a\\ud800"'],
  ['jsonl', ['{"name":"a","package_no":1}\n{"name":"b"}\n'], `line 2: ${NO_NUMBER}`],
  ['jsonl', ['{"name":"b"}\n{"name":"a","package_no":1}\n'], 'line 2: there is a package_no, but the first package has none'],
  ['json', ['{"i":["a"],"next":"?"}', '{"i":["b"],"next":"?"}'], 'page 2: the next page is one that was read before: check `next` in DATASET_JSON', next],
  ['json', ['{"i":["a"],"next":"http://["}'], 'page 1: "http://[" is not an address', next],
  ['json', ['{"i":["a"],"next":{}}'], 'page 1: next is neither a string nor a number: "{}"', next],
  ['json', ['{"i":["a"],"next":"?2"}', undefined], "page 2: the dataset's server responded with 404 instead of 200", next],
  ['json', ['{"i":["a"],"next":"?2"}', '{"error":"x"}'], NO_ITEMS.replace('1', '2'), next],
  ['json', ['{"i":"a"}'], NO_ITEMS, next],
  ['json', ['"a"'], 'page 1: expected a JSON object or array'],
  ['json', ['[{"n":"a"}]'], 'page 1: item 0 is not a string: say where its name is (DATASET_JSON=name=…)'],
  ['json', ['[{"n":"a","v":null},{"n":"b"}]'], 'no item has `v.no` (DATASET_JSON)', { ...byName, version: ['v', 'no'] }],
  ['json', ['["a"]["b"]'], 'page 1: expected JSON, but it is malformed after byte 4'],
  ['pypi', ['{"meta":{"api-version":"2.0"},"projects":[{"name":"a"}]}'], NO_INDEX],
  ['pypi', ['{"meta":{"api-version":"1.0"}}'], NO_INDEX],
  ['pypi', [html('<a href="/login">Sign in</a>')], 'expected a Simple index, but the page has no link to a project'],
  ['pypi', [html('<a href="flask/">Open</a><a href="b/"></a><a href="a.txt">a.txt</a>')], 'the text of no link to a folder is the name of the folder: that of "flask/" is "Open"'],
  ...['<a hre', '<a href="b">', '</bod'].map((end): [DatasetFormat, string[], string] => ['pypi', [`<p><a href="a">a</a>${end}`], `the page is cut off after byte ${20 + end.length}, within a tag or a link`]),
  ['npm', [page('a', 'b'), page('a', 'b')], 'page 2: rows[1].id is the name that the page begins with'],
  ['npm', [page('a', 'b'), page('b', 'a'), page('a', 'b')], 'page 3: its names are those of an earlier page: expected later ones'],
  ['npm', [page('a', 'b'), '{"error":"x","reason":"y"}'], NO_ROWS],
  ['npm', [page('a', 'b'), '{"rows":{"c":{"id":"c"}}}'], NO_ROWS],
  ['npm', [page('a', 'b'), LOGIN_PAGE], 'page 2: expected JSON, but this is an HTML or XML page'],
  ['crates', [archive({ versions: undefined })], 'expected a dump of crates.io, but it has no data/versions.csv'],
  ['crates', [archive({ crates: 'id,title\n1,a\n' })], 'crates.csv: expected a column `name` in its header'],
  ['crates', [archive({ versions: 'id,num\n1\n' })], 'versions.csv: record 2: 1 fields instead of 2'],
  ['crates', [archive({ crates: 'id,name\n1,a\n2,"b' })], 'crates.csv: record 3: cut off'],
  ['crates', [archive({ crates: 'description,id,name\n,1,a\na pack' })], 'crates.csv: record 3: cut off'],
  ['crates', [archive({ crate_downloads: '' })], 'crate_downloads.csv: expected a header'],
  ['crates', [archive({ crates: `id,name\n1,${'x'.repeat(100_000)}\n` })], 'crates.csv: record 2: a value is longer than 65536 bytes'],
  ['crates', [archive({}).subarray(0, 1700)], 'expected a tar archive, complete and undamaged'],
  ['crates', [archive({}).fill(1, 1100, 1200)], 'expected a tar archive, complete and undamaged'],
  ['rubygems', ['a 1 c\nb c d\na 2 c\n'], `line 2: ${NO_GEM} "b c d"`],
  ['rubygems', ['---\na 1 c\nsize: 2\n'], `line 3: ${NO_GEM} "size: 2"`],
  ['rubygems', ['created_at: 2024-04-01T00:00:05Z\n'], 'the list has no packages'],
  ['rubygems', ['---\na 1.0,1.'], `line 2: ${CUT_OFF}`],
  ['packagist', ['{"available-package-patterns":["a/*"],"packages":[]}'], `${NO_LIST} available-package-patterns`],
  ['packagist', ['{"metadata-url":"/p2/%package%.json","packages":{}}'], `${NO_LIST} metadata-url`],
  ['packagist', ['{"includes":{"http://127.0.0.2:1/x":{}}}'], `${LEADS_TO} http://127.0.0.2:1 instead of ORIGIN`],
  ['packagist', ['{"list":"file:///etc/hostname"}'], `${LEADS_TO} file: instead of ORIGIN`],
  ['packagist', ['{"includes":{"x":{}}}', undefined], "included file 1: the dataset's server responded with 404 instead of 200"],
  ['packagist', ['{"packages":[]}'], 'the list has no packages'],
  ['packagist', ['{"packages":[{"name":"a/a"}]}'], `packages[0]: ${MISSING}`],
  ['packagist', ['{"name":"a/a","require":{}}'], 'expected `packageNames`, or the packages.json of a Composer repository'],
  ['packagist', ['{"list":"/list"}'], 'list: expected names in `packageNames`'],
  ['debian', [stanza, 'Package: b\nArchitecture: all\n'], 'file 2: line 1: the stanza of "b" has no Version'],
  ['debian', [`${stanza}<p>\n`], 'line 3: expected a field of a Packages index: "<p>"'],
  ['debian', ['', '\n'], 'file 2: expected a Packages index, but it has no stanza'],
  ['debian', [bytes('Package: a\nversion: 1\xe2\x82\n')], `line 1: ${NOT_UTF8}`],
  ['debian', [XZ_65], `${BAD_XZ} 4`],
  ['debian', [XZ_DELTA], `${BAD_XZ} 6`],
  ['debian', [XZ_SHA256], `${BAD_XZ} 6`],
  ['debian', [stanza, XZ.subarray(0, -20)], `file 2: ${BAD_XZ} 8`],
]; // prettier-ignore

describe('A list', () => {
  const serve = useListServer();

  for (const [format, documents, reason, paths = { items: [] }] of REJECTED) {
    const shown = JSON.stringify(documents[0]?.toString('latin1').slice(0, 40));
    it(`of ${format} is rejected that begins with ${shown}: ${reason.slice(0, 60)}`, async () => {
      const { origin } = await serve(inTurn(...documents.map((document) => () => document)));
      const urls = format === 'debian' ? documents.map((_, i) => `${origin}/${i}`) : `${origin}/list`;
      expect(await convert(format, urls, { paths })).to.equal(reason.replace('ORIGIN', origin));
    });
  }
});

describe('A bad package', () => {
  const serve = useListServer();

  for (const format of DATASET_FORMATS) {
    it(`of ${format} rejects the list, or is one row that DATASET_MAX_BAD_ROWS allows`, async () => {
      const lists = BAD_PACKAGES.filter(([one]) => one === format);
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
    const { origin } = await serve(inTurn(cutOff(long), () => long));
    const skipped: string[] = [];
    expect(await convert('json', `${origin}/list`, { maxBadRows: 1 }, skipped)).to.have.length(20_000);
    expect(skipped).to.deep.equal(['page 1: item 0: name is not a string: "7"']);
  });

  it('is none that lacks a member which another one has, even as null', async () => {
    const { origin } = await serve(() => '[{"n":"a","v":null},{"n":"b"}]');
    expect(await convert('json', `${origin}/list`, { paths: { ...byName, version: ['v'] } })).to.have.length(
      2,
    );
  });
});
