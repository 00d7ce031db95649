import { expect } from 'chai';
import { bundledPackages } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { useProxiedService } from '../support/proxied-service.js';

/** More than can run and wait together. */
const SEARCHES = 600;
/** Searches that run concurrently: while these are held, all others wait or are rejected. */
const RUNNING = 16;

describe('Excess searches', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => bundledPackages().slice(0, 20_000));

  it('get 503 with Retry-After at once, while /ping, /health and the other searches succeed', async () => {
    // Warms up an engine that has just started.
    for (let i = 0; i < 50; i++) await suite.service.get(`/search?limit=1&q=py${i.toString(36)}`);
    // Held until a search is rejected, so that the engine cannot keep up with the 600 requests.
    const holds = Array.from({ length: RUNNING }, () =>
      suite.proxy.hold('before', (_method, path) => path.includes('/_msearch')),
    );
    // Different queries, so that no response is cached or shared.
    const searches = Array.from({ length: SEARCHES }, (_, i) =>
      suite.service.get(`/search?limit=1&q=lib${i.toString(36)}`),
    );
    const others = ['/ping', '/health', '/ping', '/health'].map((path) => suite.service.get(path));
    await Promise.any(searches.map(async (search) => expect((await search).status).to.equal(503)));
    for (const hold of holds) hold.release();
    for (const { status } of await Promise.all(others)) expect(status).to.equal(200);

    const answers = await Promise.all(searches);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).to.be.within(1, SEARCHES - 272);
    for (const answer of refused) {
      expectProblem(answer, 503, 'search_unavailable');
      expect(answer.headers.get('Retry-After')).to.equal('1');
    }
    expect((await suite.service.get('/search?q=libz')).status).to.equal(200);
  });
});
