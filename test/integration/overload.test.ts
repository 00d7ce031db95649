import { expect } from 'chai';
import { bundledPackages } from '../support/datasets.js';
import { expectProblem } from '../support/expect-problem.js';
import { useProxiedService } from '../support/proxied-service.js';

/** More than run and wait together. */
const SEARCHES = 600;
/** How many searches run at the same time: while these are held, all others wait or are refused. */
const RUNNING = 16;

describe('Overload', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => bundledPackages().slice(0, 20_000));

  it('is refused at once, 503 with Retry-After, while /ping and /health answer; the rest is answered', async () => {
    // An engine that has just started is slow at first.
    for (let i = 0; i < 50; i++) await suite.service.get(`/search?limit=1&q=py${i.toString(36)}`);
    // Until a search is refused, so that the engine cannot be quicker than the 600 requests arrive.
    const holds = Array.from({ length: RUNNING }, () =>
      suite.proxy.hold('before', (_method, path) => path.includes('/_msearch')),
    );
    // Each one is another query, so that none is answered by the cache or by an equal one.
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
