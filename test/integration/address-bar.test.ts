import { expect } from 'chai';
import { packagesNamed } from '../support/datasets.js';
import { expectInvalid, expectProblem } from '../support/expect-problem.js';
import { useService, useSharedService, type Service } from '../support/service.js';
import { useReplicaStarter } from '../support/replica-starter.js';

const PACKAGES = packagesNamed(Array.from({ length: 15 }, (_, i) => `lib-${i}`)).map((entry, i) => ({
  ...entry,
  weight: i % 7,
}));

/** The text of the description, and its templates by type. */
async function descriptionOf({ url }: Service, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/opensearch.xml`, { headers });
  const type = 'application/opensearchdescription+xml; charset=utf-8';
  expect(response.headers.get('Content-Type')).to.equal(type);
  const xml = await response.text();
  const addresses = xml.matchAll(/<Url type="([^"]+)"(?: rel="\w+")? template="([^"]+)"\/>/g);
  const templates = [...addresses].map(([, type = '', template = '']) => [type, template] as const);
  return { xml, templates: new Map(templates) };
}

describe('The address bar', function () {
  this.timeout(60_000);
  const suite = useService(() => PACKAGES);
  const startReplica = useReplicaStarter(suite);

  it('gets the ten most used packages as suggestions', async () => {
    const { body } = await suite.service.get('/search?q=lib&sort=weight&limit=10');
    const results = body.results as (typeof PACKAGES)[number][];
    const answer = await suite.service.get('/suggest?q=lib');
    expect(answer.headers.get('Content-Type')).to.equal('application/x-suggestions+json; charset=utf-8');
    expect(answer.body).to.deep.equal([
      'lib',
      results.map(({ name }) => name),
      results.map(({ version }) => version),
      results.map(({ url }) => url),
    ]);
    expect(results).to.have.length(10);
  });

  it('returns the sent query without names for less than two characters', async () => {
    const { body } = await suite.service.get('/suggest?q=%20lib-1%20');
    expect(body[0]).to.equal(' lib-1 ');
    expect(body[1]).to.have.length(6);
    for (const [q, echoed] of [
      ['', ''],
      ['l', 'l'],
      ['%20l', ' l'],
      ['%F0%9F%9A%80', '🚀'],
    ] as const)
      // prettier-ignore
      expect((await suite.service.get(`/suggest?q=${q}`)).body).to.deep.equal([echoed, [], [], []]);
  });

  it('gets the packages with all words of at least two characters', async () => {
    const namesFor = async (q: string) => (await suite.service.get(`/suggest?q=${q}`)).body[1] as string[];
    const names = await namesFor('lib-1');
    expect(await namesFor('1%20ib-1%20b')).to.deep.equal(await namesFor('ib-1'));
    expect(await namesFor('lib%09%20l%20-1')).to.deep.equal(names);
    expect(await namesFor(`lib${'%20-1'.repeat(7)}%20none`)).to.have.members(names);
    expect(await namesFor('lib%20-1%20none')).to.deep.equal([]);
    expect(await namesFor('l%201')).to.deep.equal([]);
  });

  it('gets 400 unless there is one query of at most 100 characters', () =>
    expectInvalid(suite.service, '/suggest', '/suggest?q=a&q=b', `/suggest?q=${'x'.repeat(101)}`));

  it('gets suggestions that are tagged and limited like searches', async () => {
    const replica = await startReplica({ RATE_LIMIT_POINTS: '2' });
    const first = await replica.get('/suggest?q=lib');
    expect(first.headers.get('X-Snapshot')).to.equal(await suite.service.snapshot());
    const etag = first.headers.get('ETag') ?? '';
    expect((await replica.get('/suggest?q=lib', { headers: { 'If-None-Match': etag } })).status).to.equal(
      304,
    );
    expectProblem(await replica.get('/suggest?q=lib'), 429, 'rate_limited');
    expect((await replica.get('/opensearch.xml')).status).to.equal(200);
  });

  it('finds both searches in a valid description, which the page links', async () => {
    const { xml, templates } = await descriptionOf(suite.service);
    expect(xml).to.contain('<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">');
    expect(xml)
      .to.match(/<ShortName>[\w-]{1,16}<\/ShortName>/)
      .and.match(/<Description>[^<]{1,1024}<\/Description>/);
    const { url } = suite.service;
    expect(templates.get('text/html')).to.equal(`${url}/?q={searchTerms}`);
    const suggestions = templates.get('application/x-suggestions+json') ?? '';
    expect(suggestions).to.equal(`${url}/suggest?q={searchTerms}`);
    const answer = await fetch(suggestions.replace('{searchTerms}', encodeURIComponent('lib-1')));
    expect(((await answer.json()) as unknown[])[0]).to.equal('lib-1');
    const page = await (await fetch(url)).text();
    const [, name] = /<ShortName>([\w-]{1,16})<\/ShortName>/.exec(xml) ?? [];
    expect(page).to.match(new RegExp(`<link\\s+rel="search"\\s+type="application/opensearchdescription\\+xml"\\s+href="opensearch.xml"\\s+title="${name}"`)); // prettier-ignore
  });

  it('finds PUBLIC_URL or the address that a trusted proxy reports', async () => {
    const forwarded = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': "a&b'.example" };
    const templateOf = async (service: Service) =>
      (await descriptionOf(service, forwarded)).templates.get('text/html');
    expect(await templateOf(suite.service)).to.equal(`${suite.service.url}/?q={searchTerms}`);
    const trusting = await startReplica({ TRUSTED_PROXIES: '127.0.0.1' });
    expect(await templateOf(trusting)).to.equal("https://a&amp;b'.example/?q={searchTerms}");
    const { templates } = await descriptionOf(trusting);
    expect(templates.get('text/html')).to.equal(`${trusting.url}/?q={searchTerms}`);
    const configured = { TRUSTED_PROXIES: '127.0.0.1', PUBLIC_URL: 'https://search.example/npm/' };
    expect(await templateOf(await startReplica(configured))).to.equal(
      'https://search.example/npm/?q={searchTerms}',
    );
  });
});

describe('robots.txt', function () {
  this.timeout(60_000);
  const suite = useSharedService();

  it('allows the page and disallows the API', async () => {
    const response = await fetch(`${suite.service.url}/robots.txt`);
    expect(response.headers.get('Content-Type')).to.equal('text/plain; charset=utf-8');
    const rules = (await response.text()).trimEnd().split('\n');
    expect([rules[0], rules.at(-1)]).to.deep.equal(['User-agent: *', 'Allow: /']);
    const { paths } = (await suite.service.get('/openapi.json')).body as { paths: object };
    const prefixes = Object.keys(paths).map((path) => `Disallow: ${path.replace('{name}', '')}`);
    expect(rules.slice(1, -1)).to.have.members(prefixes);
  });
});
