import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { pino } from 'pino';
import { jsonPaths } from '../../../src/config/json-paths.js';
import { BadRows } from '../../../src/lists/fetch/dataset-error.js';
import { decompress } from '../../../src/lists/fetch/decompress.js';
import { Weights } from '../../../src/lists/weights.js';
import {
  convert,
  cutOff,
  inTurn,
  useListServer,
  withStatus,
  type Answer,
} from '../../support/list-server.js';

/** `u:p` and `other:secret`, as browsers and curl send them. */
const BASIC = `Basic ${btoa('u:p')}`;
const OTHER = `Basic ${btoa('other:secret')}`;

describe('Inputs that users of other services reported', () => {
  const serve = useListServer();
  const redirect = (location: string) => withStatus(301, { Location: location })();
  const withUser = (address: string, user = 'u:p') => address.replace('//', `//${user}@`);

  describe('Credentials in an address', () => {
    /** Answers only requests with the credentials; redirects `/moved/x` to the absolute address of `/x`. */
    const guarded = (documents: Record<string, Answer>) =>
      serve(({ pathname, search }, { host, authorization }) => {
        if (authorization !== BASIC) return (response) => response.writeHead(401).end();
        const [, path] = /^\/moved(\/.*)$/.exec(pathname) ?? [];
        return path === undefined ? documents[pathname + search] : redirect(`http://${host}${path}${search}`);
      });
    for (const [format, path, documents] of [
      ['csv', '/moved/moved/list', { '/list': 'name\na\n' }],
      ['packagist', '/moved/x', { '/x': '{"includes":{"/moved/1":{}}}', '/1': '{"packages":{"a":{}}}' }],
      ['json', '/moved/list', { '/list': '{"i":["a"],"next":"/moved/2"}', '/2': '{"i":[]}' }],
    ] as const) {
      it(`are kept when ${format} is redirected to an absolute address of the same origin`, async () => {
        const { origin } = await guarded(documents);
        const paths = { items: ['i'], next: { path: ['next'] } };
        expect(await convert(format, withUser(origin) + path, { paths })).to.deep.equal([{ name: 'a' }]);
      });
    }

    it('are not sent to another origin, from where a redirect back has them again', async () => {
      const home = await serve(({ pathname }) =>
        pathname === '/list' ? redirect(`${away.origin}/`) : 'a\n',
      );
      const away = await serve(() => redirect(`${home.origin}/back`));
      expect(await convert('lines', `${withUser(home.origin)}/list`)).to.deep.equal([{ name: 'a' }]);
      expect(home.requests.map(({ headers }) => headers.authorization)).to.deep.equal([BASIC, BASIC]);
      expect(away.requests.map(({ headers }) => headers.authorization)).to.deep.equal([undefined]);
    });

    it('are those of each of several addresses, and those that a redirect has', async () => {
      const { origin, requests } = await serve(({ pathname }, { host }) => {
        if (pathname === '/a') return redirect(`http://${host}/b`);
        if (pathname === '/c') return redirect(`http://u:p@${host}/d`);
        if (pathname === '/d') return redirect(`http://${host}/e`);
        return `Package: ${pathname.slice(1)}\nVersion: 1\n`;
      });
      await convert('debian', [`${withUser(origin)}/a`, `${withUser(origin, 'other:secret')}/a`]);
      await convert('debian', `${origin}/c`);
      expect(requests.map(({ headers }) => headers.authorization)).to.deep.equal([
        BASIC, BASIC, OTHER, OTHER, undefined, BASIC, BASIC,
      ]); // prettier-ignore
    });
  });

  describe('A list with page numbers (json, pages=page)', () => {
    /** Pages of two names, however many there are; unless `page` is a number from 1, the first page. */
    const paged = (names: readonly string[], parameter = 'page') =>
      serve(({ searchParams }) => {
        const page = Number(searchParams.get(parameter)) || 1;
        return JSON.stringify(names.slice(2 * page - 2, 2 * page).map((n) => ({ n })));
      });
    const paths = jsonPaths.parse('name=n pages=page');

    it('is read until a page has no items', async () => {
      for (const names of [['a'], ['a', 'b'], ['a', 'b', 'c', 'd', 'e', 'f', 'g']]) {
        const { origin, requests } = await paged(names);
        const rows = await convert('json', `${origin}/packages`, { paths });
        expect(rows).to.deep.equal(names.map((name) => ({ name })));
        expect(requests).to.have.length(Math.ceil(names.length / 2) + 1);
        expect(requests.at(-1)?.url).to.equal(`/packages?page=${requests.length}`);
      }
      expect(await convert('json', (await paged([])).origin, { paths })).to.equal('the list has no packages');
    });

    it('begins at 1 whatever the address has, and keeps its other parameters', async () => {
      const { origin, requests } = await paged(['a', 'b', 'c'], 'page[number]');
      const options = { paths: { ...paths, pages: ['page[number]'] } };
      const rows = await convert('json', `${origin}/?sort=name&page[number]=2&page[number]=9`, options);
      expect(rows).to.have.length(3);
      expect(requests[0]?.url).to.equal('/?sort=name&page%5Bnumber%5D=1');
      expect(requests.at(-1)?.url).to.equal('/?sort=name&page%5Bnumber%5D=3');
    });

    it('is rejected if a page repeats the one before, as if the server ignored the parameter', async () => {
      const reason = 'it repeats the page before: the server may ignore `page` (DATASET_JSON)';
      const { origin, requests } = await serve(() => JSON.stringify([{ n: 'a' }, { n: 'b' }]));
      expect(await convert('json', origin, { paths })).to.equal(`page 2: ${reason}`);
      expect(requests).to.have.length(2);
      // The last page again and again.
      const last = await serve(({ searchParams }) =>
        JSON.stringify([{ n: String(Math.min(3, Number(searchParams.get('page')))) }]),
      );
      expect(await convert('json', last.origin, { paths })).to.equal(`page 4: ${reason}`);
      // Versions of one package, on two pages.
      const versions = await serve(({ searchParams }) =>
        JSON.stringify(Number(searchParams.get('page')) > 2 ? [] : [{ n: 'a', v: searchParams.get('page') }]),
      );
      const rows = await convert('json', versions.origin, { paths: { ...paths, version: ['v'] } });
      expect(rows).to.deep.equal([{ name: 'a', version: '2' }]);
    });

    it('follows `Link` before the next number', async () => {
      const linked = await serve(({ search }) => {
        if (search === '?page=1')
          return (response) => response.setHeader('Link', '<?after=a>; rel="next"').end('[{"n":"a"}]');
        return search === '?page=3' ? '[]' : `[{"n":"b"}]`;
      });
      expect(await convert('json', linked.origin, { paths })).to.deep.equal([{ name: 'a' }, { name: 'b' }]);
      expect(linked.requests.map(({ url }) => url)).to.deep.equal(['/?page=1', '/?after=a', '/?page=3']);
    });
  });

  describe('Members of JSON whose own names have dots', () => {
    const read = async (paths: string, ...pages: unknown[]) => {
      const { origin } = await serve(inTurn(...pages.map((page) => () => JSON.stringify(page))));
      return convert('json', `${origin}/list`, { paths: jsonPaths.parse(paths) });
    };
    const map = { z: { version: 1 }, 'y.z': { version: 2 } };

    it('are found by `items`, with some or all of the dots of the path', async () => {
      for (const document of [
        { 'a.b.c': map },
        { 'a.b': { c: map } },
        { a: { 'b.c': map } },
        { 'a.b': 5, a: { b: { c: map } } },
        { a: { b: { c: { x: {} } }, 'b.c': map } },
        { 'a.b': { c: map }, a: { 'b.c': { x: {} } } },
      ]) {
        const rows = await read('items=a.b.c version=version', document);
        const listed = [{ name: 'z', version: '1' }, { name: 'y.z', version: '2' }]; // prettier-ignore
        expect(rows, JSON.stringify(document)).to.deep.equal(listed);
      }
    });

    it('are an error if the member with the longer name comes long after the other one', async () => {
      const names = Array.from({ length: 20_000 }, (_, i) => `name-${i}`);
      expect(await read('items=a.b', { a: { b: names }, 'a.b': ['x'] })).to.equal(
        'page 1: two members match `a.b` (DATASET_JSON)',
      );
      expect(await read('items=a.b', { 'a.b': ['x'], a: { b: names } })).to.deep.equal([{ name: 'x' }]);
      expect(await read('items=a.b', { 'a.b': [], a: { b: names } })).to.equal('the list has no packages');
    });

    it('are found by `next`, as an address and as a token', async () => {
      const rows = [{ name: 'a' }, { name: 'b' }];
      for (const first of [
        { '@odata.nextLink': '?2', value: ['a'] },
        { value: ['a'], '@odata': { nextLink: '?2' } },
        { '@odata': { nextLink: '?3' }, value: ['a'], '@odata.nextLink': '?2' },
      ])
        expect(await read('items=value next=@odata.nextLink', first, { value: ['b'] })).to.deep.equal(rows);
      const none = { '@odata.nextLink': null, value: ['a', 'b'], '@odata': { nextLink: '?2' } };
      expect(await read('items=value next=@odata.nextLink', none)).to.deep.equal(rows);
      const token = { x: { 'y.z': 7 }, value: ['a'] };
      expect(await read('items=value next=page:x.y.z', token, { value: ['b'] })).to.deep.equal(rows);
    });

    it('are found by the fields of an item', async () => {
      const paths = 'name=pkg.name version=v.latest.no weight=dl.all';
      const row = { name: 'a', version: '3', weight: '5' };
      for (const item of [
        { 'pkg.name': 'a', 'v.latest.no': 3, 'dl.all': 5 },
        { pkg: { name: 'x' }, 'pkg.name': 'a', v: { 'latest.no': 3, latest: { no: 4 } }, dl: { all: 5 } },
        { pkg: { name: 'a' }, 'v.latest': { no: 3 }, v: { latest: { no: 4 } }, 'dl.all': 5, dl: { all: 6 } },
        { pkg: { name: 'a' }, 'v.latest': { x: 1 }, v: { latest: { no: 3 } }, 'dl.all': 5 },
      ])
        expect(await read(paths, [item])).to.deep.equal([row]);
      expect(await read('name=constructor', [{ a: 1 }])).to.match(/: name is not a string: it is missing$/);
    });

    it('change no name that equals a path', async () => {
      const names = ['packages.conda', '@odata.nextLink', 'next.page', 'packages', 'conda'];
      const paths = 'items=packages.conda next=next.page';
      const items = names.map((name) => ({ n: { 'next.page': name } }));
      for (const [list, others] of [
        [{ 'packages.conda': names, 'next.page': '' }, ''],
        [{ packages: { conda: Object.fromEntries(names.map((name) => [name, {}])) } }, ''],
        [{ 'packages.conda': items }, ' name=n.next.page'],
      ] as const)
        expect(await read(paths + others, list)).to.deep.equal(names.map((name) => ({ name })));
    });
  });

  describe("PACKAGES of R's repositories (debian)", () => {
    const stanza = (version: string, others: string) => `Package: a\nVersion: ${version}\n${others}\n`;
    const CRAN = 'Depends: R (>= 3.5.0)\nLicense: GPL-3\nMD5sum: 0\nNeedsCompilation: no\n';

    for (const [what, version, ...stanzas] of [
      ["R's order", '1.0-10', CRAN, 'License: MIT\n', 'NeedsCompilation: yes\nBuilt: R 4.5.0; ; windows\n'],
      ["Debian's order", '1.0.9', '', 'Architecture: all\n', 'License: MIT\nFilename: a.ipk\nMD5Sum: 0\n'],
    ] as const) {
      it(`have the highest version by ${what}`, async () => {
        for (const others of stanzas) {
          const both = [stanza('1.0.9', others), stanza('1.0-10', others)];
          for (const list of [both, both.toReversed()]) {
            const { origin } = await serve(() => list.join(''));
            expect(await convert('debian', origin), others).to.deep.equal([{ name: 'a', version }]);
          }
        }
      });
    }
  });

  describe('A pointer to a file whose content is elsewhere', () => {
    const oid = 'sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393';
    const spec = (version: string) => `version ${version}\noid ${oid}\nsize 12345\n`;
    const key = 'SHA256E-s12--4d7a214614ab2935.csv';
    const LFS = 'this is a pointer of Git LFS, not the file itself: run `git lfs pull`';
    const ANNEX = 'this is a pointer of git-annex, not the file itself: run `git annex get`';
    const POINTERS: [text: string, reason: string][] = [
      [spec('https://git-lfs.github.com/spec/v1'), LFS],
      [spec('https://git-lfs.github.com/spec/v1').replaceAll('\n', '\r\n'), LFS],
      [`version https://git-lfs.github.com/spec/v1\next-0-foo ${oid}\noid ${oid}\nsize 1\n`, LFS],
      [spec('https://hawser.github.com/spec/v1'), LFS],
      [spec('http://git-media.io/v/2'), LFS],
      [`# git-media\n${oid.slice(7)}\n`, LFS],
      [`# external\n${oid.slice(7)}`, LFS],
      [`/annex/objects/${key}\n`, ANNEX],
      [`../.git/annex/objects/Xj/8v/${key}/${key}`, ANNEX],
      [`.git/annex/objects/Xj/8v/${key}/${key}\n`, ANNEX],
      [`../../.git/modules/lists/annex/objects/Xj/8v/${key}/${key}`, ANNEX],
      [`..\\.git\\annex\\objects\\Xj\\8v\\${key}\\${key}`, ANNEX],
    ];

    it('is refused as any list, also compressed', async () => {
      for (const [text, reason] of POINTERS) {
        for (const body of [text, gzipSync(text)]) {
          const { origin } = await serve(() => body);
          expect(await convert('csv', origin), text).to.equal(reason);
          expect(await convert('npm', origin), text).to.equal(`page 1: ${reason}`);
        }
      }
    });

    it('is refused as weights', async () => {
      for (const [text, reason] of POINTERS) {
        const weights = Weights.read(
          decompress(Readable.from([Buffer.from(text)])),
          { name: 'name', weight: 'weight' },
          undefined,
          new BadRows(0, pino({ level: 'silent' })),
        );
        expect(await weights.catch((error: unknown) => error)).to.include({ message: reason });
      }
    });

    it('is not a list that mentions one', async () => {
      const names = ['x/annex/objects/y', 'git-media', '.git'];
      const list = `# version https://git-lfs.github.com/spec/v1\n${names.join('\n')}\n`;
      const { origin } = await serve(() => list);
      expect(await convert('lines', origin)).to.deep.equal(names.map((name) => ({ name })));
    });
  });

  describe('Comments in lines', () => {
    it('are ignored wherever they stand alone in a line', async () => {
      const list = '\uFEFF# names\n#\n##\n#a\nb 1\n  # indented comment <x>\r\n\t#c 2\r\nc#d\n# last\n';
      const rows = [{ name: 'b', version: '1' }, { name: 'c#d', version: '' }]; // prettier-ignore
      for (const [body, outcome] of [
        [list, rows],
        ['# none\n', 'the list has no packages'],
        ['# page\n<html>\n', 'line 2: expected a name, or a name and a version'],
      ] as const)
        expect(await convert('lines', (await serve(() => body)).origin)).to.deep.equal(outcome);
    });
  });

  describe('A page of _all_docs with total_rows (npm)', () => {
    const page = (total: unknown, ...ids: string[]) =>
      JSON.stringify({ total_rows: total, rows: ids.map((id) => ({ id })) });
    const read = async (...pages: Answer[]) => {
      const { origin } = await serve(inTurn(...pages.map((one) => () => one)));
      return convert('npm', `${origin}/_all_docs`);
    };
    it('is an error if the list ends early, which names both numbers', async () => {
      const reason = 'the list has 3 rows instead of 5 (total_rows)';
      expect(await read(page(5, 'a', 'b', 'c'), page(5, 'c'))).to.equal(`page 2: ${reason}`);
      expect(await read(page(5, 'a', 'b'), page(5, 'b', 'c'), page(5))).to.equal(`page 3: ${reason}`);
      expect(await read(page(5, '_design/x', 'a', 'b'), '{"rows":[]}')).to.equal(`page 2: ${reason}`);
      expect(await read(page(5))).to.equal('page 1: the list has 0 rows instead of 5 (total_rows)');
    });

    it('may differ by 1 %, counts design documents, and may have fewer rows than the list', async () => {
      const names = Array.from({ length: 1000 }, (_, i) => `name-${i}`);
      const last = names.at(-1) ?? '';
      for (const total of [990, 1000, 1010, undefined, null, '2000'])
        expect(await read(page(total, ...names), page(total, last)), String(total)).to.have.length(1000);
      expect(await read(page(1011, ...names), page(1011, last))).to.equal(
        'page 2: the list has 1000 rows instead of 1011 (total_rows)',
      );
      expect(await read(page(3, '_design/x', 'a', 'b'), page(3, 'b'))).to.have.length(2);
      // The registry grows while it is read.
      expect(await read(page(2, 'a', 'b'), page(3, 'b', 'c'), page(3, 'c'))).to.have.length(3);
    });

    it('counts each row of an interrupted page once', async () => {
      const many = Array.from({ length: 5000 }, (_, i) => `name-${i}`);
      const rest = ({ searchParams }: URL) => {
        const start = JSON.parse(searchParams.get('startkey') ?? '""') as string;
        return page(5000, ...many.slice(many.indexOf(start)));
      };
      const { origin, requests } = await serve(inTurn(cutOff(page(5000, ...many)), rest));
      expect(await convert('npm', `${origin}/_all_docs`)).to.deep.equal(many.map((name) => ({ name })));
      expect(requests[1]?.url).to.match(/&startkey=%22name-\d+%22$/);
    });
  });
});
