import type { RequestListener } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { ElasticsearchUnavailableError } from '../../../src/elasticsearch/elasticsearch-errors.js';
import {
  CONNECTIONS_PER_NODE,
  ONE_NODE_TIMEOUT_MS,
  SearchPool,
} from '../../../src/elasticsearch/search-pool.js';
import { withNodes } from '../../support/node-servers.js';
import { KEY_LOOKUP_FAILURE } from '../../support/key-lookup-failure.js';
import { waitFor } from '../../support/wait-for.js';

type Options = ConstructorParameters<typeof SearchPool>[1];
type Nodes = Parameters<typeof withNodes>[0];

/** Longer than a node of these tests needs, in case the processor is busy. */
const PATIENT: Options = { timeoutMs: 500 };

/** For searches that no node responds to. */
const SHORT: Options = { timeoutMs: 80 };

/** How much longer than its timeouts a search may take on a busy processor, in milliseconds. */
const SLACK_MS = 1000;

function withPool<T>(nodes: Nodes, use: (pool: SearchPool) => Promise<T>, options = PATIENT): Promise<T> {
  return withNodes(nodes, async (urls) => {
    const pool = new SearchPool({ nodes: urls, apiKey: 'key' }, options);
    return use(pool).finally(() => pool.close());
  });
}

const askPool = (pool: SearchPool, index = 'index') => pool.search(index, [{ size: 1 }, { size: 2 }], 'test');

/** @returns the results of two searches, or the error. */
function ask(nodes: Nodes, options?: Options): Promise<unknown> {
  return withPool(nodes, (pool) => askPool(pool), options).catch((error: unknown) => error);
}

/** Runs this many searches concurrently. */
function askAtOnce(pool: SearchPool, searches: number, index?: string): Promise<unknown[]> {
  const search = () => askPool(pool, index).catch((error: unknown) => error);
  return Promise.all(Array.from({ length: searches }, search));
}

const answering =
  (body: unknown, status = 200): RequestListener =>
  (_request, response) => {
    response.statusCode = status;
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
const hit = (entry: string) => ({ fields: { entry: [entry] } });
const good = (...hits: object[]) => ({
  timed_out: false,
  _shards: { failed: 0 },
  hits: hits.length === 0 ? undefined : { hits },
  status: 200,
});
const failed = (type: string, status: number) => ({ error: { type, reason: 'a reason' }, status });

const WHOLE_TEXT = JSON.stringify({ responses: [good(), good(hit('AAAA'))] });
const whole = answering(WHOLE_TEXT);
const NONE = { entries: [], exact: 0 };
const WHOLE = [NONE, { entries: ['AAAA'], exact: 0 }];
const hangs: RequestListener = () => undefined;
const breaks: RequestListener = (request) => request.socket.destroy();
/** A proxy that responds in place of Elasticsearch. */
const proxy =
  (status: number, body: string): RequestListener =>
  (_request, response) => {
    response.removeHeader('X-Elastic-Product');
    response.writeHead(status, { Location: '/' }).end(body);
  };
describe('SearchPool', () => {
  // The first request compiles the parser of undici, which can take longer than the timeouts of these tests.
  before(() => ask([whole], {}));

  // The responses of one search, or the status of the response to both.
  const partial: [what: string, answer: object | number, isRetried: boolean][] = [
    ['a shard that failed', { ...good(hit('AAAA')), _shards: { failed: 1 } }, true],
    ['a full queue', failed('es_rejected_execution_exception', 429), false],
    ['status 503', 503, true],
    ['status 401', 401, false],
  ];
  for (const [what, answer, isRetried] of partial) {
    it(`${isRetried ? 'tries the next node' : 'fails without trying the next node'} after ${what}`, async () => {
      const listeners =
        typeof answer === 'number'
          ? [answering('{}', answer)]
          : [answering({ responses: [good(), answer] }), answering({ responses: [answer, good()] })];
      for (const stale of listeners) {
        const outcomes: string[] = [];
        const onSearch = (_node: string, outcome: string) => void outcomes.push(outcome);
        expect(await ask([stale], { onSearch })).to.be.instanceOf(ElasticsearchUnavailableError);
        expect(await ask([stale, stale], { onSearch })).to.be.instanceOf(ElasticsearchUnavailableError);
        expect(outcomes).to.deep.equal(Array(isRetried ? 3 : 2).fill('unavailable'));
        if (!isRetried) continue;
        for (const nodes of [[stale, whole], [whole, stale]]) expect(await ask(nodes)).to.deep.equal(WHOLE); // prettier-ignore
      }
    });
  }

  const away: [what: string, node: Nodes[number]][] = [
    ['cannot be reached', undefined],
    ['does not speak HTTP', (request) => request.socket.end('SSH-2.0-OpenSSH\r\n')],
    ['is starting or has no master', answering('{}', 503)],
    ['cannot look up the API key', answering(KEY_LOOKUP_FAILURE, 401)],
    ['hangs', hangs],
    ['hangs in the middle of a response', (_request, response) => void response.write('{"responses":[')],
    ['is a proxy that finds nothing', proxy(404, '{"error":{"type":"index_not_found_exception"}}')],
    ['is a proxy with other JSON', proxy(200, '{}')],
    ['compresses its response', (_request, response) => void response.end(gzipSync(WHOLE_TEXT))],
    ['answers only one of two searches', answering({ responses: [good()] })],
  ];
  for (const [what, node] of away) {
    it(`tries the next node in time if one ${what}`, async () => {
      const began = performance.now();
      const answers = [ask([node, whole]), ask([whole, node]), ask([node, node, node], SHORT)];
      const [first, second, none] = await Promise.all(answers);
      expect([first, second]).to.deep.equal([WHOLE, WHOLE]);
      expect(none).to.be.instanceOf(ElasticsearchUnavailableError);
      expect(performance.now() - began).to.be.lessThan(500 + SLACK_MS);
    });
  }

  it('tries the next node if one does not speak TLS', async () => {
    const answer = await withNodes([whole], ([url = '']) => ask([url.replace('http', 'https'), whole]));
    expect(answer).to.deep.equal(WHOLE);
  });

  it('shares the time of a search between two tries, unless there is only one node', async () => {
    const msOf = async (nodes: number) => {
      const began = performance.now();
      expect(await ask(Array(nodes).fill(hangs), {})).to.be.instanceOf(ElasticsearchUnavailableError);
      return performance.now() - began;
    };
    for (const ms of await Promise.all([1, 2, 3].map(msOf)))
      expect(ms).to.be.within(ONE_NODE_TIMEOUT_MS - 50, ONE_NODE_TIMEOUT_MS + SLACK_MS);
  });

  it('retries on the node that has not failed for the longest time', async () => {
    let isDown = false;
    const breaksLater: RequestListener = (request, response) => (isDown ? breaks : whole)(request, response);
    await withPool(
      [breaksLater, breaks, whole],
      async (pool) => {
        // The second node fails, and its backoff ends at once.
        for (let i = 0; i < 3; i++) await askPool(pool);
        isDown = true;
        expect(await askAtOnce(pool, 3)).to.deep.equal([WHOLE, WHOLE, WHOLE]);
      },
      { ...PATIENT, nodeBackoffMs: 0 },
    );
  });

  it('lets every search of all connections reach another node while one hangs', async () => {
    const searches = 3 * CONNECTIONS_PER_NODE;
    const answers = await withPool([hangs, whole, whole], (pool) => askAtOnce(pool, searches));
    expect(answers.filter((answer) => answer instanceof Error)).to.deep.equal([]);
  });

  describe('with a node that failed', () => {
    const nodeBackoffMs = 400;
    const held: (() => void)[] = [];
    let isDown: boolean;
    let arrived: number;
    const starting: RequestListener = (request, response) => {
      arrived++;
      if (isDown) breaks(request, response);
      else held.push(() => whole(request, response));
    };
    const wave = async (pool: SearchPool, searches: number) => {
      expect(await askAtOnce(pool, searches)).to.deep.equal(Array(searches).fill(WHOLE));
    };
    /** After searches during which the first node failed. A stall of this process must not count as a slow response. */
    const withFailed = (use: (pool: SearchPool) => Promise<void>) =>
      withPool(
        [starting, whole, whole],
        async (pool) => {
          isDown = true;
          await wave(pool, 30);
          isDown = false;
          arrived = 0;
          await use(pool);
        },
        { timeoutMs: 5000, nodeBackoffMs },
      );

    it('sends it no search until its backoff ends', () =>
      withFailed(async (pool) => {
        await wave(pool, 3 * CONNECTIONS_PER_NODE);
        expect(arrived).to.equal(0);
      }));

    it('sends it one search afterwards, until it has responded', () =>
      withFailed(async (pool) => {
        await pause(nodeBackoffMs);
        let answered = 0;
        const first = Array.from({ length: 3 }, () => askPool(pool).then(() => answered++));
        await waitFor(() => held.length === 1 && answered === 2, 'two of three responses');
        for (let i = 0; i < 20; i++) await wave(pool, 1);
        expect(arrived).to.equal(1);
        for (const respond of held) respond();
        await Promise.all(first);
      }));
  });

  it('does not avoid a node because of an index that no node can search', async () => {
    const requests = [0, 0];
    const nodes = requests.map((_count, node): RequestListener => (request, response) => {
      const isBroken = request.url?.startsWith('/broken') === true;
      if (!isBroken) requests[node] = (requests[node] ?? 0) + 1;
      answering({ responses: [isBroken ? failed('a_phase_failed', 503) : good()] })(request, response);
    });
    await withPool(nodes, async (pool) => {
      const search = (index: string) => pool.search(index, [{}], 'test').catch((error: unknown) => error);
      expect(await search('broken')).to.be.instanceOf(ElasticsearchUnavailableError);
      for (let i = 0; i < 10; i++) await search('index');
    });
    expect(requests).to.deep.equal([5, 5]);
  });
});
