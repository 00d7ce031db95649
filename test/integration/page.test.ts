import { expect } from 'chai';
import { useSharedService } from '../support/service.js';

/** The pages, and the files that their HTML references. */
async function filesOf(url: string): Promise<string[]> {
  const pages = await Promise.all(['/', '/docs'].map(async (path) => (await fetch(url + path)).text()));
  const named = pages.flatMap((html) => [...html.matchAll(/"(page\/[^"]+)"/g)].map(([, path]) => `/${path}`));
  return ['/', '/docs', ...new Set(named)];
}

describe('The served page', function () {
  this.timeout(60_000);
  const suite = useSharedService(() => ({ RATE_LIMIT_POINTS: '1' }));

  it('is complete: every file that it references exists, with the right type', async () => {
    const types: Record<string, string> = { html: 'text/html', css: 'text/css', js: 'text/javascript' };
    const files = await filesOf(suite.service.url);
    // One script and one style sheet of each page.
    expect(files.filter((path) => /\.(js|css)$/.test(path))).to.have.length(4);
    for (const path of files) {
      const answer = await fetch(suite.service.url + path);
      expect(answer.status, path).to.equal(200);
      const [, extension = 'html'] = path.split('.');
      const type = extension === 'svg' ? 'image/svg+xml' : `${types[extension]}; charset=utf-8`;
      expect(answer.headers.get('Content-Type'), path).to.equal(type);
      expect(await answer.text()).not.to.equal('');
    }
  });

  it('has a strict content security policy, without inline code', async () => {
    for (const path of ['/', '/docs']) {
      const { headers } = await fetch(suite.service.url + path);
      const policy = headers.get('Content-Security-Policy') ?? '';
      const directives = policy.split(';');
      const own = ["default-src 'none'", "script-src 'self'", "img-src 'self'", "connect-src 'self'"];
      expect(directives).to.include.members([...own, "base-uri 'none'", "frame-ancestors 'none'"]);
      // The library of the API documentation has inline styles, and parses Markdown as HTML.
      if (path === '/docs') expect(directives).to.include("style-src 'self' 'unsafe-inline'");
      else expect(directives).to.include.members(["style-src 'self'", "require-trusted-types-for 'script'"]);
      const others = directives.filter(
        (directive) => !(path === '/docs' && directive.startsWith('style-src')),
      );
      expect(others.join(';')).not.to.match(/unsafe|data:|http:|https:|\*/);
      expect(headers.get('X-Content-Type-Options')).to.equal('nosniff');
      expect(headers.get('Access-Control-Allow-Origin')).to.equal(null);
      expect(headers.get('Strict-Transport-Security')).to.equal(null);
    }
  });

  it('has less than 30 KB beside 180 KB of API documentation, compressed', async () => {
    const bytes = { page: 0, docs: 0 };
    for (const path of await filesOf(suite.service.url)) {
      const inEncoding = (encoding: string) =>
        fetch(suite.service.url + path, { headers: { 'Accept-Encoding': encoding } });
      const plain = await (await inEncoding('identity')).text();
      for (const encoding of ['gzip', 'br']) {
        const compressed = await inEncoding(encoding);
        expect(compressed.headers.get('Content-Encoding'), path).to.equal(encoding);
        // `fetch` decompresses it.
        expect(await compressed.text(), path).to.equal(plain);
        if (encoding === 'br')
          bytes[path.includes('docs') ? 'docs' : 'page'] += Number(compressed.headers.get('Content-Length'));
      }
    }
    expect(bytes.page).to.be.within(1000, 30_000);
    expect(bytes.docs).to.be.within(1000, 180_000);
  });

  it('is revalidated each time, with 304 if unchanged', async () => {
    for (const path of await filesOf(suite.service.url)) {
      const { headers } = await fetch(suite.service.url + path);
      expect(headers.get('Cache-Control')).to.equal('no-cache');
      const condition = { 'If-None-Match': headers.get('ETag') ?? '' };
      const again = await fetch(suite.service.url + path, { headers: condition });
      expect(again.status, path).to.equal(304);
    }
  });

  it('does not count against the rate limit', async () => {
    for (let i = 0; i < 3; i++)
      for (const path of await filesOf(suite.service.url)) await fetch(suite.service.url + path);
    expect((await suite.service.get('/browse')).status).to.equal(200);
    expect((await suite.service.get('/browse')).status).to.equal(429);
    expect((await fetch(suite.service.url)).status).to.equal(200);
  });
});
