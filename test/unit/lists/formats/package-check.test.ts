import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import type { PackageEntry } from '../../../../src/snapshot/package-document.js';
import { packagesNamed, toCsv } from '../../../support/datasets.js';
import { readRows, type Row } from '../../../support/rows.js';

function rowsOf(csv: string, urlTemplate?: string): Promise<Row[]> {
  return readRows([Buffer.from(csv)], urlTemplate);
}

/** The first row, which is on line 2: its package, or the reason why it is bad. */
async function readRow(csv: string, urlTemplate?: string): Promise<PackageEntry | string> {
  const [row] = await rowsOf(csv, urlTemplate);
  if (row?.line !== 2) throw new Error(`the row is on line ${row?.line}`);
  return 'entry' in row ? row.entry : row.reason;
}

const BASE = 'https://registry.example/';
const TEMPLATE = `${BASE}{name}`;
const ALPHA: PackageEntry = { no: 7, name: 'alpha', version: '1.2', url: `${BASE}a` };
const HEADER = 'package_no,name,version,url\n';
const NOT_A_NUMBER = 'is not a number from 1 to 9007199254740991 in digits without leading zeros';

/** A dataset of one package, with some of its fields replaced. */
function csvWith(fields: Partial<Record<keyof PackageEntry, string>>): string {
  const { no, name, version, url } = { ...ALPHA, ...fields };
  return `${HEADER}${no},${name},${version},${url}\n`;
}

/** A text that is exactly `bytes` bytes long in UTF-8. */
function textOf(start: string, character: string, bytes: number): string {
  const text = start + character.repeat((bytes - start.length) / Buffer.byteLength(character));
  return text + 'x'.repeat(bytes - Buffer.byteLength(text));
}

describe('PackageCheck', () => {
  it('finds the columns by name, among others', async () => {
    for (const csv of [
      csvWith({}),
      `x,name,url,,package_no,Name,version\n1,alpha,${BASE}a,2,7,3,1.2\n`,
      `note,name,note,package_no,version,url\n,alpha,,7,1.2,${BASE}a\n`,
      `\ufeffname,package_no,version,url\r\nalpha,7,1.2,${BASE}a\r\n`,
    ])
      expect(await rowsOf(csv), csv).to.deep.equal([{ line: 2, entry: ALPHA }]);
  });

  describe('by default', () => {
    it('sets version `latest`', async () => {
      for (const csv of [csvWith({ version: '' }), `package_no,name,url\n7,alpha,${BASE}a\n`]) {
        expect(await readRow(csv)).to.deep.equal({ ...ALPHA, version: 'latest' });
      }
    });

    it('numbers rows by position, with bad rows and records of several lines', async () => {
      const rows = await rowsOf('name\na\nb\n\nx"y\n"c\nd"\ne,f\ng\n', TEMPLATE);
      const numbers = rows.map((row) => `${row.line}: ${'entry' in row ? row.entry.no : 'bad'}`);
      expect(numbers).to.deep.equal(['2: 1', '3: 2', '4: bad', '5: bad', '6: bad', '8: bad', '9: 7']);
    });

    it('sets the URL of the template only if the row has none', async () => {
      expect(await readRow(csvWith({ url: '' }), TEMPLATE)).to.have.property('url', `${BASE}alpha`);
      const unusual = { name: '..', url: `${BASE}a/../b` };
      expect(await readRow(csvWith(unusual), TEMPLATE)).to.deep.equal({ ...ALPHA, ...unusual });
    });
  });

  const links: [name: string, path: string, link: string][] = [
    ['a b?c#d%e', '{name}', 'a%20b%3Fc%23d%25e'],
    ['日本🚀', '{name}', '%E6%97%A5%E6%9C%AC%F0%9F%9A%80'],
    ['@babel/core/x', 'p/{+name}', 'p/@babel/core/x'],
    ['g++&=;', 'p/{+name}', 'p/g++%26%3D%3B'],
    ['@a b/c?d', 'p/{+name}', 'p/@a%20b/c%3Fd'],
    ['a/b', '{name}/{+name}?q={name}&r={+name}#{other}', 'a%2Fb/a/b?q=a%2Fb&r=a/b#{other}'],
    // Dots that are no path segment.
    ['..', '?name={name}', '?name=..'],
    ['..', '#/{+name}', '#/..'],
    ['..', 'of-{name}', 'of-..'],
    // Names that look like a template, a replacement pattern or an escape sequence.
    ...['{+name}', '$&', '$1', '%40'].map((name): [string, string, string] => [name, '{name}', encodeURIComponent(name)]),
    ['{+name}%2F', '{+name}', '%7B+name%7D%252F'],
  ]; // prettier-ignore
  for (const [name, path, link] of links) {
    it(`makes the URL of ${JSON.stringify(name)} from ${path}`, async () => {
      const csv = toCsv(packagesNamed([name])).replace('version,url', 'version,link');
      expect(await readRow(csv, BASE + path)).to.include({ name, url: BASE + link });
    });
  }

  describe('with a name of dots in a URL template', () => {
    it('rejects a row if a browser would resolve the dots', async () => {
      for (const [names, path] of [
        ['. ..', '{name}'],
        ['. ..', '{name}/view?x#y'],
        ['. .. ../a ./a a/.. a/. a/../b a/./b @a/..', 'p/{+name}'],
      ] as const) {
        for (const name of names.split(' ')) {
          const url = BASE + path.replace(/\{.*\}/, name);
          const reason = `name "${name}" gives a url with a \`.\` or \`..\` path segment: "${url}"`;
          expect(await readRow(`name\n${name}\n`, BASE + path)).to.equal(reason);
        }
      }
    });

    it('accepts other dots, with a URL that decodes to the name', async () => {
      for (const path of ['{name}', 'p/{+name}']) {
        for (const name of '... .a a. ..a a.b .-. %2e %2E%2e ..%2f ..\\\\ .?'.split(' ')) {
          const { url } = (await readRow(`name\n${name}\n`, BASE + path)) as PackageEntry;
          expect(new URL(url).href).to.equal(url);
          expect(decodeURIComponent(url.slice(url.lastIndexOf('/') + 1))).to.equal(name);
        }
      }
    });
  });

  describe('rejects a row', () => {
    const nines = (count: number) => '9'.repeat(count);
    const bad: [what: string, csv: string, reason: string, urlTemplate?: string][] = [
      ['with too few fields', `${HEADER}1,a,1\n`, '3 fields instead of 4'],
      ['with too many fields', csvWith({ url: `${BASE},` }), '5 fields instead of 4'],
      ['that is an empty line', `${HEADER}\n`, '1 fields instead of 4'],
      ['with an empty name', csvWith({ name: '' }), 'name is empty'],
      ['that is an empty line under one column', 'name\n\n', 'name is empty', TEMPLATE],
      ['without a URL', csvWith({ url: '' }), 'url is empty, and PACKAGE_URL_TEMPLATE is not set'],
      ['with a quote within a field', csvWith({ name: 'a"b' }), 'bad quoting'],
      ['with 800,000 digits', csvWith({ no: nines(800_000) }), `package_no "${nines(64)}"… ${NOT_A_NUMBER}`],
    ];
    for (const [what, csv, reason, urlTemplate] of bad) {
      it(what, async () => {
        expect(await readRow(csv, urlTemplate)).to.equal(reason);
        expect(reason.length).to.be.at.most(300);
      });
    }

    const badNumbers = ['', '0', '-1', '+1', '1.0', '1e3', '0x1', ' 1', '1 ', '007', '٣', '9007199254740992'];
    it('with a number that is too large, or not written in plain digits', async () => {
      for (const no of badNumbers) {
        expect(await readRow(csvWith({ no }))).to.equal(`package_no "${no}" ${NOT_A_NUMBER}`);
      }
      const largest = await readRow(csvWith({ no: '9007199254740991' }));
      expect(largest).to.have.property('no', Number.MAX_SAFE_INTEGER);
    });

    it('with a weight that is too large, or not written in plain digits', async () => {
      const weighed = (weight: string) => readRow(`name,url,weight\na,${BASE}a,${weight}\n`);
      for (const weight of ['-1', '1.5', '01', '1e3', ' 1', 'many', '9007199254740992', '١'])
        expect(await weighed(weight)).to.equal(`weight "${weight}" ${NOT_A_NUMBER.replace('1', '0')}`);
      for (const weight of ['', '0', '1', '9007199254740991'])
        expect(await weighed(weight)).to.have.property('weight', Number(weight));
    });

    const bounds: [field: 'name' | 'version' | 'url', bytes: number, start: string][] = [
      ['name', 512, ''],
      ['version', 256, ''],
      ['url', 2048, BASE],
    ];
    for (const [field, bytes, start] of bounds) {
      it(`with a ${field} of more than ${bytes} bytes, even if it has fewer characters`, async () => {
        for (const character of ['x', 'é', '日', '🚀']) {
          const longest = textOf(start, character, bytes);
          expect(await readRow(csvWith({ [field]: longest }))).to.have.property(field, longest);
          const reason = `${field} is longer than ${bytes} bytes`;
          expect(await readRow(csvWith({ [field]: `${longest}x` }))).to.equal(reason);
          expect(await readRow(csvWith({ [field]: `/${'x'.repeat(800_000)}` }))).to.equal(reason);
        }
      });
    }

    it('whose URL from the template is too long', async () => {
      const reason = 'url made from PACKAGE_URL_TEMPLATE is longer than 2048 bytes';
      const longest = `name\n${'é'.repeat(256)}\n`;
      expect(await readRow(longest, TEMPLATE)).to.have.property('url', BASE + '%C3%A9'.repeat(256));
      expect(await readRow(longest, `${TEMPLATE}/{name}`)).to.equal(reason);
      const start = BASE.padEnd(2047, 'x');
      expect(await readRow('name\na\n', `${start}{name}`)).to.have.property('url', `${start}a`);
      expect(await readRow('name\nab\n', `${start}{name}`)).to.equal(reason);
    });

    const badUrl = (url: string) =>
      `url ${url} is not an absolute http(s) URL without control characters and white space at its ends`;

    it('with a control character in its URL, which URL parsers drop or encode', async () => {
      for (const character of ['\t', '\n', '\r', '\0', '\x7f', '\x9f']) {
        for (const url of [`${BASE}b${character}c`, BASE + character])
          expect(await readRow(csvWith({ url: `"${url}"` }))).to.equal(badUrl(JSON.stringify(url)));
      }
    });

    it('with a URL that is not absolute', async () => {
      for (const url of ['/a', 'a.example/a', '//a.example/a', 'https://', 'https://a b/', '?a', '#a']) {
        expect(await readRow(csvWith({ url }), TEMPLATE)).to.equal(badUrl(`"${url}"`));
      }
    });

    it('with white space around its URL', async () => {
      for (const url of [`${BASE}a `, ` ${BASE}a`, `${BASE}a\u00a0`, `${BASE}a?b=c `]) {
        const quoted = `"${url.replace('\u00a0', '\\u00a0')}"`;
        expect(await readRow(csvWith({ url }), TEMPLATE)).to.equal(badUrl(quoted));
      }
    });

    it('with an invisible character in its name, or white space at an end', async () => {
      const reason = /^name "[^"]+" has white space at an end, or an invisible character$/;
      for (const name of ['a ', ' a', '\u00a0a', 'a\u3000', 'a\u2028', '\uFEFFa', 'r\u200ba', 'r\u202ea', 'r\0a', 'r\ta', 'a\u007f', 'r\u{e0041}a', ' '])
        expect(await readRow(csvWith({ name })), JSON.stringify(name)).to.match(reason); // prettier-ignore
      for (const name of ['my redis', 'é日本🚀', 'a\u3000b', 'a\u00a0b', '\uFFFD', 'ﬁ', 'e\u0301', '\uE000', '\u3164'])
        expect(await readRow(csvWith({ name }))).to.have.property('name', name); // prettier-ignore
    });

    it('with a line break in its name or version, which a stray quote adds', async () => {
      const stray = 'there may be a stray quote in this line';
      const csv = `${HEADER}1,alpha,1,${BASE}a\n2,"beta,1,${BASE}b\n3,gamma,1,${BASE}c\n4,delta",1,${BASE}d\n5,e,1,${BASE}e\n`;
      const rows = await rowsOf(csv);
      expect(rows.map(({ line }) => line)).to.deep.equal([2, 3, 6]);
      expect(rows[1]).to.deep.equal({ line: 3, reason: `name has a line break: ${stray}` });
      expect(await readRow(csvWith({ name: '"a\rb"' }))).to.equal(`name has a line break: ${stray}`);
      expect(await readRow(csvWith({ version: '"1\n2"' }))).to.equal(`version has a line break: ${stray}`);
    });

    it('with a URL that is not http(s)', async () => {
      for (const url of ['javascript:alert(1)', 'JavaScript:alert(1)//https://a.example/', 'file:///etc/passwd', 'https:a.example'])
        expect(await readRow(csvWith({ url }), TEMPLATE)).to.equal(badUrl(`"${url}"`)); // prettier-ignore
      for (const url of ['http://a.example/', 'HTTPS://A.example/B', 'https://a.example/日本 é']) {
        expect(await readRow(csvWith({ url }))).to.have.property('url', url);
      }
    });
  });

  const rename = (shown: string, column: string) => `line 1: rename the column ${shown} to \`${column}\``;
  const noName = (header: string) =>
    `line 1: the header has no column \`name\`: ${header}. Separate fields with commas, or set DATASET_FORMAT`;
  const unusable: [what: string, csv: string, message: string][] = [
    ['an empty file', '', 'the dataset is empty'],
    ['no column `name`', 'package_no,url\n1,https://a.example/\n', noName('"package_no,url"')],
    ['a column `name` in another case', 'Name,url\n', rename('"Name"', 'name')],
    ['a column `weight` in another case', 'name,url,Weight\n', rename('"Weight"', 'weight')],
    ['white space within a column', 'Package_No\t,name,url\n', rename('"Package_No\\t"', 'package_no')],
    ['a second byte order mark', '\ufeff\ufeffname,url\n', rename('"\\ufeffname"', 'name')],
    ['a very long column', `${' '.repeat(500_000)}name\n`, rename(`"${' '.repeat(64)}"…`, 'name')],
    ['semicolons', 'name;url\n', noName('"name;url"')],
    ['tabs', 'name\turl\n', noName('"name\\turl"')],
    ['a comma among semicolons', 'name;url;notes, if any\n', noName('"name;url;notes, if any"')],
    ['JSON', '{"names":["a"]}', 'this is JSON: set DATASET_FORMAT to the format of the list'],
    ['an HTML page', ' <!DOCTYPE html>\n<p>\n', noName('" <!DOCTYPE html>"')],
    ['an empty first line', '\nname,url\n', noName('""')],
    ['no `url` and no template', 'name,version\na,1\n', 'line 1: there is no column `url`: add it, or set PACKAGE_URL_TEMPLATE, such as https://registry.example/{name}'],
    ['bad quoting', 'na"me,url\na,b\n', 'line 1 (the header): bad quoting'],
  ]; // prettier-ignore
  for (const column of ['package_no', 'name', 'version', 'url', 'weight']) {
    const message = `line 1: there are two columns \`${column}\``;
    unusable.push([`two columns \`${column}\``, `${column},x,weight,${HEADER}`, message]);
  }
  for (const [what, csv, message] of unusable) {
    it(`rejects a header with ${what}`, async () => {
      await rejects(rowsOf(csv), { name: 'DatasetError', message });
    });
  }
});
