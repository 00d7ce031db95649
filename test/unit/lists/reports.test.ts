import { expect } from 'chai';
import { convert, useListServer, type Answer } from '../../support/list-server.js';

/** `u:p` and `other:secret`, as browsers and curl send them. */
const BASIC = `Basic ${btoa('u:p')}`;
const OTHER = `Basic ${btoa('other:secret')}`;

describe('Inputs that users of other services reported', () => {
  const serve = useListServer();
  const redirect =
    (location: string, link?: string): Answer =>
    (response) =>
      response.writeHead(301, { Location: location, ...(link === undefined ? {} : { Link: link }) }).end();
  const withUser = (address: string, user = 'u:p') => address.replace('//', `//${user}@`);

  describe('Credentials in an address', () => {
    /** Answers only requests with the credentials; redirects `/moved/x` to the absolute address of `/x`. */
    const guarded = (documents: Record<string, Answer>) =>
      serve(({ pathname, search }, { host, authorization }) => {
        if (authorization !== BASIC) return (response) => response.writeHead(401).end();
        const [, path] = /^\/moved(\/.*)$/.exec(pathname) ?? [];
        return path === undefined ? documents[pathname + search] : redirect(`http://${host}${path}${search}`);
      });
    const a = 'Package: a\nVersion: 1\n';

    for (const [format, path, documents] of [
      ['pypi', '/moved/simple/', { '/simple/': '<a href="a/">a</a>' }],
      ['csv', '/moved/moved/list', { '/list': 'name\na\n' }],
      ['rubygems', '/moved/versions', { '/versions': '---\na 1 x\n' }],
      ['debian', '/moved/Packages', { '/Packages': a }],
      [
        'npm',
        '/moved/_all_docs',
        {
          '/_all_docs?limit=10000': '{"total_rows":1,"rows":[{"id":"a"}]}',
          '/_all_docs?limit=10000&startkey=%22a%22': '{"total_rows":1,"rows":[{"id":"a"}]}',
        },
      ],
      [
        'packagist',
        '/moved/packages.json',
        {
          '/packages.json': '{"includes":{"/moved/one.json":{}}}',
          '/one.json': '{"packages":{"a":{}}}',
        },
      ],
      ['json', '/moved/list', { '/list': '{"i":["a"],"next":"/moved/2"}', '/2': '{"i":[]}' }],
    ] as const) {
      it(`are kept when ${format} is redirected to an absolute address of the same origin`, async () => {
        const { origin } = await guarded(documents);
        const paths = { items: ['i'], next: { path: ['next'] } };
        const rows = await convert(format, withUser(origin) + path, { paths });
        expect(rows).to.have.length(1).with.nested.property('[0].name', 'a');
      });
    }

    it('are not sent to another origin, from where a redirect back has them again', async () => {
      const home = await serve((url, { host }) =>
        url.pathname === '/list' ? redirect(`http://localhost:${away.port}/${host}`) : 'a\n',
      );
      const away = await serve(({ pathname }) => redirect(`http:/${pathname}/back`)).then((server) => ({
        ...server,
        port: new URL(server.origin).port,
      }));
      expect(await convert('lines', `${withUser(home.origin)}/list`)).to.deep.equal([{ name: 'a' }]);
      expect(home.requests.map(({ headers }) => headers.authorization)).to.deep.equal([BASIC, BASIC]);
      expect(away.requests.map(({ headers }) => headers.authorization)).to.deep.equal([undefined]);
      expect(await convert('lines', `${home.origin}/list`, { authorization: BASIC })).to.deep.equal([
        { name: 'a' },
      ]);
      expect(away.requests.at(-1)?.headers.authorization).to.equal(undefined);
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
});
