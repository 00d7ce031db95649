import { rejects } from 'node:assert/strict';
import { Readable } from 'node:stream';
import { expect } from 'chai';
import type { PackageEntry } from '../../../src/search/package-document.js';
import { readRows, type Row } from '../../../src/rebuild/rows.js';
import { packagesNamed, toCsv } from '../../support/datasets.js';
import { integer, pick, seededRandom } from '../../../fixtures/random.js';

async function rowsOf(csv: string, urlTemplate?: string): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const batch of readRows(Readable.from([Buffer.from(csv)]), urlTemplate)) rows.push(...batch);
  return rows;
}

/** The packages of a CSV without bad rows. */
async function entriesOf(csv: string, urlTemplate?: string): Promise<PackageEntry[]> {
  const rows = await rowsOf(csv, urlTemplate);
  return rows.map((row) => {
    if ('reason' in row) throw new Error(`line ${row.line}: ${row.reason}`);
    return row.entry;
  });
}

/** The reason why the row on line 2 is bad. */
async function reasonOf(csv: string, urlTemplate?: string): Promise<string> {
  const [row] = await rowsOf(csv, urlTemplate);
  if (row === undefined || !('reason' in row)) throw new Error('the row is valid');
  expect(row.line).to.equal(2);
  return row.reason;
}

const TEMPLATE = 'https://registry.example/{name}';
const ALPHA: PackageEntry = { no: 7, name: 'alpha', version: '1.2', url: 'https://registry.example/a' };

describe('readRows', () => {
  it('reads packages with their line numbers', async () => {
    expect(
      await rowsOf('package_no,name,version,url\n7,alpha,1.2,https://registry.example/a\n'),
    ).to.deep.equal([{ line: 2, entry: ALPHA }]);
  });

  it('finds the columns by name, in any order, and ignores others', async () => {
    for (const csv of [
      'url,version,name,package_no\nhttps://registry.example/a,1.2,alpha,7\n',
      'x,name,url,,package_no,Name,version\n1,alpha,https://registry.example/a,2,7,3,1.2\n',
      '"name","package_no","version","url"\n"alpha","7","1.2","https://registry.example/a"\n',
      '\ufeffname,package_no,version,url\r\nalpha,7,1.2,https://registry.example/a\r\n',
    ]) {
      expect(await entriesOf(csv), csv).to.deep.equal([ALPHA]);
    }
  });

  it('ignores other columns, even with duplicate names', async () => {
    const csv = 'note,name,note,package_no,version,url\n,alpha,,7,1.2,https://registry.example/a\n';
    expect(await entriesOf(csv)).to.deep.equal([ALPHA]);
  });

  it('reads back any names', async () => {
    const random = seededRandom(4);
    const pieces = [
      'a',
      'B',
      '-',
      '.',
      '/',
      '@',
      '_',
      ' ',
      ',',
      '"',
      '\n',
      '\r\n',
      '\r',
      'é',
      '日',
      '🚀',
      '\0',
      '\\',
      "'",
    ];
    const names = Array.from(
      { length: 500 },
      (_, i) => `${i}${Array.from({ length: integer(random, 0, 12) }, () => pick(random, pieces)).join('')}`,
    );
    expect(await entriesOf(toCsv(packagesNamed(names)))).to.deep.equal(packagesNamed(names));
  });

  it('reads no rows from a header alone', async () => {
    expect(await rowsOf('name,url\n')).to.deep.equal([]);
  });

  describe('by default', () => {
    it('sets version `latest`', async () => {
      const [entry] = await entriesOf('package_no,name,version,url\n7,alpha,,https://registry.example/a\n');
      expect(entry).to.deep.equal({ ...ALPHA, version: 'latest' });
      const [other] = await entriesOf('package_no,name,url\n7,alpha,https://registry.example/a\n');
      expect(other).to.deep.equal({ ...ALPHA, version: 'latest' });
    });

    it('numbers rows by position if there is no such column', async () => {
      const numbers = (await entriesOf('name\na\nb\nc\n', TEMPLATE)).map(({ no }) => no);
      expect(numbers).to.deep.equal([1, 2, 3]);
    });

    it('counts bad rows in the position, and a record of several lines once', async () => {
      const rows = await rowsOf('name\na\n\nx"y\n"b\nc"\nd,e\nf\n', TEMPLATE);
      expect(rows.map((row) => ('entry' in row ? row.entry.no : row.line))).to.deep.equal([1, 3, 4, 4, 7, 6]);
    });

    it('sets the URL of the template only if the row has none', async () => {
      const csv = 'name,url\nalpha,\nbeta,https://elsewhere.example/b\n';
      expect((await entriesOf(csv, TEMPLATE)).map(({ url }) => url)).to.deep.equal([
        'https://registry.example/alpha',
        'https://elsewhere.example/b',
      ]);
    });
  });

  describe('with a URL template', () => {
    const urlOf = async (name: string, template: string) => {
      const [entry] = await entriesOf(
        toCsv(packagesNamed([name])).replace('version,url', 'version,link'),
        template,
      );
      return entry?.url;
    };

    it('encodes a name for {name}', async () => {
      expect(await urlOf('@babel/core', TEMPLATE)).to.equal('https://registry.example/%40babel%2Fcore');
      expect(await urlOf('a b?c#d%e', TEMPLATE)).to.equal('https://registry.example/a%20b%3Fc%23d%25e');
      expect(await urlOf('日本🚀', TEMPLATE)).to.equal(
        'https://registry.example/%E6%97%A5%E6%9C%AC%F0%9F%9A%80',
      );
    });

    it('keeps / and @ for {+name}', async () => {
      const template = 'https://registry.example/p/{+name}';
      expect(await urlOf('@babel/core/x', template)).to.equal('https://registry.example/p/@babel/core/x');
      expect(await urlOf('@a b/c?d', template)).to.equal('https://registry.example/p/@a%20b/c%3Fd');
    });

    it('replaces every placeholder of both kinds', async () => {
      const template = 'https://registry.example/{name}/{+name}?q={name}&r={+name}#{other}';
      expect(await urlOf('a/b', template)).to.equal(
        'https://registry.example/a%2Fb/a/b?q=a%2Fb&r=a/b#{other}',
      );
    });

    it('inserts a name literally that looks like a template or a replacement pattern', async () => {
      for (const name of ['{name}', '{+name}', '$&', '$1', "$'", '$$', '%40', '%2F']) {
        expect(await urlOf(name, TEMPLATE), name).to.equal(
          `https://registry.example/${encodeURIComponent(name)}`,
        );
        expect(await urlOf(name, 'https://registry.example/{+name}'), name).to.equal(
          `https://registry.example/${encodeURIComponent(name)}`,
        );
      }
    });
  });

  describe('with a name of dots in a URL template', () => {
    const row = (name: string, template: string) => rowsOf(`name\n${name}\n`, template);
    const PLUS = 'https://registry.example/p/{+name}';
    const reason = (name: string, url: string) =>
      `name ${JSON.stringify(name)} gives a url with a \`.\` or \`..\` path segment: "https://registry.example/${url}"`;

    it('rejects the row if a browser would resolve the dots in the path', async () => {
      for (const name of ['.', '..']) {
        expect(await reasonOf(`name\n${name}\n`, TEMPLATE)).to.equal(reason(name, name));
        const within = 'https://registry.example/{name}/view?x#y';
        expect(await reasonOf(`name\n${name}\n`, within)).to.equal(reason(name, `${name}/view?x#y`));
      }
      for (const name of ['.', '..', '../a', './a', 'a/..', 'a/.', 'a/../b', 'a/./b', '@a/..']) {
        expect(await reasonOf(`name\n${name}\n`, PLUS)).to.equal(reason(name, `p/${name}`));
      }
    });

    it('accepts it elsewhere, with a URL that decodes to the name', async () => {
      for (const name of [
        '...',
        '.a',
        'a.',
        '..a',
        'a..',
        'a.b',
        '....',
        '.-.',
        '%2e',
        '%2E%2e',
        '..%2f',
        '..\\\\',
        '.?',
      ]) {
        for (const template of [TEMPLATE, PLUS]) {
          const [entry] = await entriesOf(`name\n${name}\n`, template);
          const { href } = new URL(entry?.url ?? '');
          expect(href, name).to.equal(entry?.url);
          expect(decodeURIComponent(href.slice(href.lastIndexOf('/') + 1))).to.equal(name);
        }
      }
      for (const [template, part] of [
        ['https://registry.example/?name={name}', '?name=..'],
        ['https://registry.example/#/{+name}', '#/..'],
        ['https://registry.example/of-{name}', 'of-..'],
      ] as const) {
        const [made] = await row('..', template);
        expect(made).to.have.nested.property('entry.url', `https://registry.example/${part}`);
      }
    });

    it('keeps a URL from the dataset', async () => {
      const [entry] = await entriesOf('name,url\n..,https://registry.example/a/../b\n', TEMPLATE);
      expect(entry?.url).to.equal('https://registry.example/a/../b');
    });
  });

  describe('rejects a row', () => {
    const HEADER = 'package_no,name,version,url\n';

    it('with another number of fields than the header', async () => {
      expect(await reasonOf(`${HEADER}1,a,1\n`)).to.equal('3 fields instead of 4');
      expect(await reasonOf(`${HEADER}1,a,1,https://a.example/,\n`)).to.equal('5 fields instead of 4');
      expect(await reasonOf(`${HEADER}\n`)).to.equal('1 fields instead of 4');
    });

    it('with a number that is not a positive integer', async () => {
      for (const no of [
        '',
        '0',
        '-1',
        '1.0',
        '1e3',
        '0x1',
        '+1',
        ' 1',
        '1 ',
        '007',
        'one',
        '٣',
        'NaN',
        '9007199254740992',
      ]) {
        expect(await reasonOf(`${HEADER}${no},a,1,https://a.example/\n`), no).to.equal(
          `package_no ${JSON.stringify(no)} is not a positive integer`,
        );
      }
      const [largest] = await entriesOf(`${HEADER}9007199254740991,a,1,https://a.example/\n`);
      expect(largest?.no).to.equal(Number.MAX_SAFE_INTEGER);
    });

    it('without a name', async () => {
      expect(await reasonOf(`${HEADER}1,,1,https://a.example/\n`)).to.equal('name is empty');
      expect(await reasonOf(`${HEADER}1,"",1,https://a.example/\n`)).to.equal('name is empty');
      expect(await reasonOf('name\n\n', TEMPLATE)).to.equal('name is empty');
    });

    it('with a name of more than 512 bytes, even if it has fewer characters', async () => {
      const longest = ['x'.repeat(512), 'é'.repeat(256), '🚀'.repeat(128), `${'日'.repeat(170)}ab`];
      for (const name of longest) {
        expect((await entriesOf(`name\n${name}\n`, TEMPLATE))[0]?.name).to.equal(name);
        expect(await reasonOf(`name\n${name}x\n`, TEMPLATE)).to.equal('name is longer than 512 bytes');
      }
      expect(await reasonOf(`name\n${'é'.repeat(257)}\n`, TEMPLATE)).to.equal(
        'name is longer than 512 bytes',
      );
    });

    it('with a version of more than 256 bytes, even if it has fewer characters', async () => {
      const rowOf = (version: string) => `${HEADER}1,a,${version},https://a.example/\n`;
      for (const version of ['x'.repeat(256), 'é'.repeat(128), '🚀'.repeat(64), `${'日'.repeat(85)}a`]) {
        expect((await entriesOf(rowOf(version)))[0]?.version).to.equal(version);
        expect(await reasonOf(rowOf(`${version}x`))).to.equal('version is longer than 256 bytes');
      }
      expect(await reasonOf(rowOf('x'.repeat(40_000)))).to.equal('version is longer than 256 bytes');
    });

    it('with a URL of more than 2,048 bytes, even if it has fewer characters', async () => {
      const base = 'https://a.example/';
      const rowOf = (url: string) => `${HEADER}1,a,1,${url}\n`;
      for (const path of ['x'.repeat(2048 - base.length), `${'日'.repeat(676)}ab`]) {
        const url = base + path;
        expect((await entriesOf(rowOf(url)))[0]?.url).to.equal(url);
        expect(await reasonOf(rowOf(`${url}x`))).to.equal('url is longer than 2048 bytes');
      }
      expect(await reasonOf(rowOf(base + 'x'.repeat(900_000)))).to.equal('url is longer than 2048 bytes');
    });

    it('whose URL from the template is too long', async () => {
      const reason = 'url made from PACKAGE_URL_TEMPLATE is longer than 2048 bytes';
      const longest = 'é'.repeat(256);
      const [entry] = await entriesOf(`name\n${longest}\n`, TEMPLATE);
      expect(entry?.url).to.equal(`https://registry.example/${'%C3%A9'.repeat(256)}`);
      expect(await reasonOf(`name\n${longest}\n`, `${TEMPLATE}/{name}`)).to.equal(reason);
      const exact = `https://registry.example/${'x'.repeat(2048 - 26)}{name}`;
      expect((await entriesOf('name\na\n', exact))[0]?.url).to.have.length(2048);
      expect(await reasonOf('name\nab\n', exact)).to.equal(reason);
    });

    it('with a control character in its URL, which URL parsers drop or encode', async () => {
      for (const character of ['\t', '\n', '\r', '\0', '\x1f', '\x7f', '\x80', '\x9f']) {
        for (const url of [`https://a.example/b${character}c`, `https://a.example/${character}`]) {
          expect(await reasonOf(`${HEADER}1,a,1,"${url}"\n`), JSON.stringify(url)).to.equal(
            `url ${JSON.stringify(url)} has a control character`,
          );
        }
      }
    });

    it('with a reason of at most 300 characters', async () => {
      const long = '🚀'.repeat(100_000);
      const shown = '🚀'.repeat(32);
      const reasons: [csv: string, template: string | undefined, reason: string][] = [
        [`${HEADER}1${long},a,1,https://a.example/\n`, undefined, `package_no "1${'🚀'.repeat(31)}"… is not a positive integer`],
        [`${HEADER}1,a,1,${'🚀'.repeat(500)}\n`, undefined, `url "${shown}"… is not absolute`],
        [`${HEADER}1,a,1,data:${'\0'.repeat(500)}\n`, undefined, `url "data:${'\\u0000'.repeat(9)}"… is not http(s)`],
        [`${HEADER}1,a,1,https://a.example/${'\0'.repeat(500)}\n`, undefined, `url "https://a.example/${'\\u0000'.repeat(7)}"… has a control character`],
        [
          `name\n../${'x'.repeat(500)}\n`,
          'https://registry.example/{+name}',
          `name "../${'x'.repeat(61)}"… gives a url with a \`.\` or \`..\` path segment: "https://registry.example/../${'x'.repeat(36)}"…`,
        ],
      ]; // prettier-ignore
      for (const [csv, template, expected] of reasons) {
        const reason = await reasonOf(csv, template);
        expect(reason).to.equal(expected);
        expect(reason.length).to.be.at.most(300);
      }
    });

    it('without a URL if there is no template', async () => {
      expect(await reasonOf(`${HEADER}1,a,1,\n`)).to.equal(
        'url is empty, and PACKAGE_URL_TEMPLATE is not set',
      );
    });

    it('with a URL that is not absolute', async () => {
      for (const url of [
        '/a',
        'registry.example/a',
        '//registry.example/a',
        'https://',
        'https://a b/',
        '?a',
        '#a',
      ]) {
        expect(await reasonOf(`${HEADER}1,a,1,${url}\n`, TEMPLATE), url).to.equal(
          `url ${JSON.stringify(url)} is not absolute`,
        );
      }
    });

    it('with a URL that is not http(s)', async () => {
      for (const url of [
        'javascript:alert(1)',
        'JavaScript:alert(1)//https://a.example/',
        'data:text/html;charset=utf-8',
        'ftp://registry.example/a',
        'file:///etc/passwd',
        'mailto:a@registry.example',
        'registry.example:8080/a',
        'https:registry.example',
        ' https://registry.example/a',
      ]) {
        expect(await reasonOf(`${HEADER}1,a,1,${url}\n`, TEMPLATE), url).to.equal(
          `url ${JSON.stringify(url)} is not http(s)`,
        );
      }
      for (const url of ['http://a.example/', 'HTTPS://A.example/B', 'https://a.example/日本 é']) {
        expect((await entriesOf(`${HEADER}1,a,1,${url}\n`))[0]?.url).to.equal(url);
      }
    });

    it('that the CSV reader rejects', async () => {
      expect(await reasonOf('name\na"b\n', TEMPLATE)).to.equal('bad quoting');
      expect(await reasonOf('name\n"ab\n', TEMPLATE)).to.equal('a quote is opened and never closed');
      expect(await reasonOf('name\nab', TEMPLATE)).to.match(/^the last record does not end with a line end/);
    });

    it('and keeps the rows around it', async () => {
      const rows = await rowsOf(
        `${HEADER}1,a,,https://a.example/\n2,b\nx,c,,https://c.example/\n4,d,,https://d.example/\n`,
      );
      expect(rows.map(({ line }) => line)).to.deep.equal([2, 3, 4, 5]);
      expect(rows.map((row) => ('entry' in row ? row.entry.name : row.reason))).to.deep.equal([
        'a',
        '2 fields instead of 4',
        'package_no "x" is not a positive integer',
        'd',
      ]);
    });
  });

  describe('with an unusable header', () => {
    const unusable: [what: string, csv: string, message: string][] = [
      ['an empty file', '', 'the dataset is empty'],
      ['no column `name`', 'package_no,url\n1,https://a.example/\n', 'line 1: the header has no column `name`: this is not a package dataset'],
      ['a column `name` in another case', 'Name,url\n', 'line 1: the header has no column `name`: rename the column "Name"'],
      ['white space around `name`', ' name ,url\n', 'line 1: the header has no column `name`: rename the column " name "'],
      ['semicolons', 'name;url\n', 'line 1: the header has no column `name`: separate the fields with commas'],
      ['something other than CSV', '{ name: a }\n', 'line 1: the header has no column `name`: this is not a package dataset'],
      ['an HTML page', ' <!DOCTYPE html>\n<p>\n', 'line 1: the header has no column `name`: this is an HTML page'],
      ['an empty first line', '\nname,url\n', 'line 1: the header has no column `name`: this is not a package dataset'],
      ['two columns `name`', 'name,url,name\n', 'line 1: there are two columns `name`'],
      ['two columns `package_no`', 'package_no,package_no,name,url\n', 'line 1: there are two columns `package_no`'],
      ['two columns `version`', 'name,version,url,version\n', 'line 1: there are two columns `version`'],
      ['two columns `url`', 'url,name,x,url\n', 'line 1: there are two columns `url`'],
      ['no `url` and no template', 'name,version\na,1\n', 'line 1: there is no column `url`: add it, or set PACKAGE_URL_TEMPLATE, such as https://registry.example/{name}'],
      ['bad quoting', 'na"me,url\na,b\n', 'line 1 (the header): bad quoting'],
    ]; // prettier-ignore
    for (const [what, csv, message] of unusable) {
      it(`rejects ${what}`, async () => {
        await rejects(rowsOf(csv), { name: 'DatasetError', message });
      });
    }

    it('names a long column in at most 300 characters', async () => {
      await rejects(rowsOf(`${' '.repeat(500_000)}name,url\n`), (error: Error) => {
        expect(error.message).to.match(
          /^line 1: the header has no column `name`: rename the column " {64}"…$/,
        );
        return true;
      });
    });

    it('rejects a truncated header', async () => {
      await rejects(rowsOf('name,url'), {
        name: 'DatasetError',
        message: /^line 1 \(the header\): .* cut off$/,
      });
    });
  });
});
