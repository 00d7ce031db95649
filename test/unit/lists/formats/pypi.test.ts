import { expect } from 'chai';
import { convert, useListServer, withStatus } from '../../../support/list-server.js';

const json = (names: string[]) =>
  JSON.stringify({ meta: { 'api-version': '1.0' }, projects: names.map((name) => ({ name })) });
const html = (body: string) => `<!DOCTYPE html><html><body>${body}</body></html>`;

describe('The format pypi', () => {
  const serve = useListServer();
  const convertFrom = async (body: string) => convert('pypi', (await serve(() => body)).url);

  it('is asked for once, as pip does', async () => {
    const isPip = (accept = '') => accept.includes('simple.v1+json') && accept.includes('text/html');
    const page = html('<a href="/a/">A</a>');
    const server = await serve((_url, { accept }) => (isPip(accept) ? page : withStatus(406)()));
    expect(await convert('pypi', server.url)).to.deep.equal([{ name: 'A' }]);
    expect(server.requests).to.have.length(1);
  });

  it('tells JSON and HTML apart by the first character', async () => {
    for (const body of [json(['a']), `\uFEFF\n ${json(['a'])}`, `\uFEFF\n${html('<a href="a/">a</a>')}`]) {
      const server = await serve(withStatus(200, { 'Content-Type': 'text/plain' }, body));
      expect(await convert('pypi', server.url), body).to.deep.equal([{ name: 'a' }]);
    }
  });

  it('reads the links whose text is the name of the project that they lead to', async () => {
    const links = [
      '<a href="../">..</a> <a href="/simple/">Index</a> <a>no-address</a> <a href="x/"></a>',
      '<a href="https://h.example/simple/a-b/#f">A_b</a>',
      '<a href="c%2Bd/?x=/y"\n class="p"><b>c</b>+d</a><a href="other">c</a>',
      '<a href=e>e<a href="f/">f</a>',
      '<!-- <a href="g">g</a> --><script>"<a href=h>h</a>"</script>',
      '<a href="i/">i &amp; j</a><a href="k">&#107;</a>',
    ];
    expect(await convertFrom(html(links.join('\n')))).to.deep.equal(
      ['A_b', 'c+d', 'f'].map((name) => ({ name })),
    );
  });

  it('takes links that lead to no folder if none does', async () => {
    const links = '<a href="/">Home</a><a href="a">A</a> <a href=b>b<a href="c#x">&#99;</a><a href="A">a</a>';
    expect(await convertFrom(html(links))).to.deep.equal(['A', 'b', 'c'].map((name) => ({ name })));
  });

  /** The folders flask, a-b, a name of 60 characters, and what else listings show. */
  const long = `${'long-'.repeat(11)}names`;
  const listings: Record<string, string> = {
    nginx: `<html><head><title>Index of /simple/</title></head><body><h1>Index of /simple/</h1><hr><pre><a href="../">../</a>
<a href="flask/">flask/</a>      26-Nov-2026 10:00     -
<a href="a-b/">a-b/</a>      26-Nov-2026 10:00     -
<a href="${long}/">${long.slice(0, 47)}..&gt;</a> 26-Nov-2026 10:00     -
<a href="index.txt">index.txt</a>      26-Nov-2026 10:00    12
</pre><hr></body></html>`,
    Apache: `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN"><html><body><table>
<tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>
<tr><td><img src="/icons/back.gif" alt="[PARENTDIR]"></td><td><a href="/">Parent Directory</a></td></tr>
<tr><td><a href="flask/"><img src="/icons/folder.gif" alt="[DIR]"></a></td><td><a href="flask/">flask/</a></td></tr>
<tr><td><a href="a-b/">a-b/</a></td></tr><tr><td><a href="${long}/">${long.slice(0, 20)}..&gt;</a></td></tr>
<tr><td><a href="robots.txt">robots.txt</a></td></tr></table></body></html>`,
    'python3 -m http.server': `<!DOCTYPE HTML><html lang="en"><body><h1>Directory listing for /simple/</h1><ul>
<li><a href="flask/">flask/</a></li><li><a href="a-b/">a-b@</a></li><li><a href="${long}/">${long}/</a></li>
<li><a href="readme.txt">readme.txt</a></li><li><a href="link.txt">link.txt@</a></li></ul></body></html>`,
    Caddy: `<!DOCTYPE html><html><body><h1><a href="/">/</a><a href="../">mirror</a>/<a href="/simple/">simple</a>/</h1>
<a href=".."><span class="go-up">Up</span></a><a href="./?sort=name&order=desc">Name</a>
${['flask', 'a-b', long].map((name) => `<a href="./${name}/"><svg><path d="M0"/></svg>\n<span class="name">${name}/</span></a>`).join('\n')}
<a href="./robots.txt"><svg><path/></svg><span class="name">robots.txt</span></a></body></html>`,
  };
  for (const [server, page] of Object.entries(listings)) {
    it(`takes the folders in a listing of ${server}`, async () => {
      const { origin } = await serve(() => page);
      expect(await convert('pypi', `${origin}/simple/`)).to.deep.equal(
        ['flask', 'a-b', long].map((name) => ({ name })),
      );
    });
  }

  it('needs no end tags that are optional in HTML', async () => {
    for (const page of [
      '<!DOCTYPE html><title>Index</title><a href="a/">a</a>',
      '<html><body><ul><li><a href="a/">a</a><li>1 < 2 &amp; &',
      '<html><body><table><tr><td><a href="a/">a</a>\n<!-- end -->\n',
    ]) {
      expect(await convertFrom(page), page).to.deep.equal([{ name: 'a' }]);
    }
  });
});
