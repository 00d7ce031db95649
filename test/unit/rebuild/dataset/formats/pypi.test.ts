import { expect } from 'chai';
import { convert, useListServer, withStatus } from '../../../../support/list-server.js';

const json = (names: string[], version = '1.0') =>
  JSON.stringify({ meta: { 'api-version': version }, projects: names.map((name) => ({ name })) });
const html = (body: string) => `<!DOCTYPE html><html><body>${body}</body></html>`;

describe('The format pypi', () => {
  const serve = useListServer();
  const convertFrom = async (body: string) => convert('pypi', (await serve(() => body)).url);

  for (const status of [400, 404, 406, 415]) {
    it(`is asked for once, as pip does, by a server that answers other requests by ${status}`, async () => {
      const isPip = (accept = '') => accept.includes('simple.v1+json') && accept.includes('text/html');
      const page = html('<a href="/a/">A</a>');
      const server = await serve((_url, { accept }) => (isPip(accept) ? page : withStatus(status)()));
      expect(await convert('pypi', server.url)).to.deep.equal([{ name: 'A' }]);
      expect(server.requests).to.have.length(1);
    });
  }

  it('tells JSON and HTML apart by the first character', async () => {
    for (const body of [json(['a']), `\uFEFF\n ${json(['a'])}`, `\uFEFF\n${html('<a href="a/">a</a>')}`]) {
      const server = await serve(withStatus(200, { 'Content-Type': 'text/plain' }, body));
      expect(await convert('pypi', server.url), body).to.deep.equal([{ name: 'a' }]);
    }
  });

  it('takes names that are equal after normalisation as one, in the first spelling', async () => {
    const names = ['Zope.Interface', 'b', 'zope-interface', 'zope__.interface', 'B'];
    expect(await convertFrom(json(names))).to.deep.equal([{ name: 'Zope.Interface' }, { name: 'b' }]);
  });

  it('takes the links of a page that lead to a project of the same name', async () => {
    const links = [
      '<a href="../">..</a> <a href="/simple/">Index</a> <a>no-address</a> <a href="x/"></a>',
      '<a href="https://h.example/simple/a-b/#f">A_b</a>',
      '<a href="c%2Bd/?x=/y"\n class="p"><b>c</b>+d</a><a href="other">c</a>',
      '<a href=e>e<a href="f/">f</a>',
      '<!-- <a href="g">g</a> --><script>"<a href=h>h</a>"</script>',
      '<a href="i/">i &amp; j</a><a href="k">&#107;</a>',
    ];
    expect(await convertFrom(html(links.join('\n')))).to.deep.equal(
      ['A_b', 'c+d', 'e', 'f', 'k'].map((name) => ({ name })),
    );
  });

  it('needs no end tags that are optional in HTML', async () => {
    for (const page of [
      '<!DOCTYPE html><title>Index</title><a href="a/">a</a>',
      '<html><body><ul><li><a href="a/">a</a><li>1 < 2 &amp; &',
      '<html><body><table><tr><td><a href="a/">a</a>\n<!-- end -->\n',
      '<!DOCTYPE html><a href="a/">a</a><p>é 🚀',
    ]) {
      expect(await convertFrom(page), page).to.deep.equal([{ name: 'a' }]);
    }
  });

  const index = 'expected a Simple index: `meta.api-version` 1.x and an array `projects`';
  for (const [what, body, reason] of [
    ['of version 2', json(['a'], '2.0'), index],
    ['without a version', '{"projects":[{"name":"a"}]}', index],
    ['without projects', '{"meta":{"api-version":"1.0"}}', index],
    ['of one project', '{"meta":{"api-version":"1.0"},"name":"a","files":[]}', index],
    [
      'with a project without a name',
      '{"meta":{"api-version":"1.0"},"projects":[{}]}',
      'projects[0].name is not a string: it is missing',
    ],
    [
      'without links',
      html('<a href="/login">Sign in</a>'),
      'expected a Simple index, but the page has no link to a project',
    ],
    ...['<p><a href="a">a</a><a hre', '<p><a href="a">a</a><a href="b">', '<p><a href="a">a</a></bod'].map(
      (page) =>
        ['cut off', page, `the page is cut off after byte ${page.length}, within a tag or a link`] as const,
    ),
    ['that is text', 'name,version\n', 'expected JSON, but it is malformed after byte 0'],
    [
      'that is not UTF-8',
      Buffer.from('<html><a href="\xe9">\xe9</a></html>', 'latin1').toString('latin1'),
      undefined,
    ],
  ] as const) {
    it(`rejects an index ${what}`, async () => {
      if (reason === undefined) {
        const server = await serve(() => Buffer.from(body, 'latin1'));
        expect(await convert('pypi', server.url)).to.equal('not valid UTF-8 after byte 0');
      } else expect(await convertFrom(body)).to.equal(reason);
    });
  }
});
