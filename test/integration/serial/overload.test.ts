import { expect } from 'chai';
import { packagesNamed } from '../../support/datasets.js';
import { expectProblem } from '../../support/expect-problem.js';
import { useProxiedService } from '../../support/proxied-service.js';
import { getRequest, useConnections } from '../../support/raw-connection.js';
import { waitFor } from '../../support/wait-for.js';

/** Searches that run, and that wait, at a time. */
const RUNNING = 16;
const WAITING = 256;
const EXCESS = 28;

describe('Excess searches', function () {
  this.timeout(60_000);
  const suite = useProxiedService(() => packagesNamed(['alpha']));
  const connections = useConnections(() => suite.service.url);

  it('get 503 with Retry-After at once, while /ping, /health and all other searches succeed', async () => {
    const holds = Array.from({ length: RUNNING }, () =>
      suite.proxy.hold('before', (_method, path) => path.includes('/_msearch')),
    );
    // Different queries, so that no response is cached or shared.
    const search = (i: number) => connections.open(getRequest(`/search?limit=1&q=x${i}`));
    const searches = (from: number, to: number) =>
      Promise.all(Array.from({ length: to - from }, (_, i) => search(from + i)));
    const running = await searches(0, RUNNING);
    await Promise.all(holds.map(({ arrived }) => arrived));
    const others = await searches(RUNNING, RUNNING + WAITING + EXCESS);
    const answered = () => others.flatMap(({ responses }) => responses);
    await waitFor(() => answered().length === EXCESS, 'the rejections');
    for (const response of answered()) {
      expectProblem({ ...response, body: JSON.parse(response.text) as unknown }, 503, 'search_unavailable');
      expect(response.headers.get('Retry-After')).to.equal('1');
    }
    for (const path of ['/ping', '/health'])
      expect((await suite.service.get(path)).status, path).to.equal(200);
    expect(answered(), 'all others wait').to.have.length(EXCESS);

    for (const hold of holds) hold.release();
    await waitFor(() => answered().length === others.length, 'all other responses');
    const all = [...running, ...others].flatMap(({ responses }) => responses);
    expect(all.filter(({ status }) => status === 200)).to.have.length(RUNNING + WAITING);
  });
});
