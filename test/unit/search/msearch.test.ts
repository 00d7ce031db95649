import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { runSearches } from '../../../src/search/msearch.js';
import { IndexGoneError } from '../../../src/search/msearch-response.js';
import { EngineUnavailableError, NODE_BACKOFF_MS, SearchPool } from '../../../src/clients/search-pool.js';
import { concurrentTests } from '../../support/concurrent-tests.js';

/**
 * Runs two searches on nodes with these listeners; undefined stands for an unreachable node.
 * @returns the results, or the error.
 */
function ask(...listeners: (RequestListener | undefined)[]) {
  return withPool(listeners, askPool).catch((error: unknown) => error);
}

const askPool = (pool: SearchPool) => runSearches(pool, 'index', [{ size: 1 }, { size: 2 }], 'test');

async function withPool<T>(
  listeners: (RequestListener | undefined)[],
  use: (pool: SearchPool) => Promise<T>,
  options: ConstructorParameters<typeof SearchPool>[1] = {},
) {
  const servers = listeners.map((listener) => createServer(listener).listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const urlOf = (server: Server, i: number) =>
    `http://127.0.0.1:${listeners[i] === undefined ? 1 : (server.address() as AddressInfo).port}`;
  const pool = new SearchPool({ nodes: servers.map(urlOf), apiKey: 'key' }, options);
  try {
    return await use(pool);
  } finally {
    await pool.close();
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  }
}

/** A node in a thread of its own: posts its port, and a message when a request arrives, to which it responds after 0.2 s. */
const NODE = `
const { parentPort, workerData } = require('node:worker_threads');
const server = require('node:http').createServer((request, response) => {
  parentPort.postMessage('arrived');
  setTimeout(() => response.end(workerData), 200);
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;

/** Blocks this thread, so that no timer and no response is processed. */
function suspend(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

const answering =
  (body: unknown, status = 200): RequestListener =>
  (_request, response) => {
    response.statusCode = status;
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
const hit = (entry: string) => ({ fields: { entry: [entry] } });
const exactHit = (entry: string) => ({ ...hit(entry), matched_queries: ['exact'] });
const good = (...hits: object[]) => ({
  timed_out: false,
  _shards: { failed: 0 },
  hits: { hits },
  status: 200,
});

describe('runSearches', () => {
  it('extracts the entries from a response in the usual format', async () => {
    const answer = {
      responses: [good(exactHit('AAAA'), exactHit('aaaa'), hit('BBBB')), good(hit('CCCC'), hit('DDDD'))],
    };
    expect(await ask(answering(answer))).to.deep.equal([
      { entries: ['AAAA', 'aaaa', 'BBBB'], exact: 2 },
      { entries: ['CCCC', 'DDDD'], exact: 0 },
    ]);
  });

  it('counts the exact hits, whether none, one or all hits are exact', async () => {
    for (const [hits, expected] of [
      [[], { entries: [], exact: 0 }],
      [[hit('AAAA')], { entries: ['AAAA'], exact: 0 }],
      [[exactHit('AAAA')], { entries: ['AAAA'], exact: 1 }],
      [[exactHit('AAAA'), hit('BBBB')], { entries: ['AAAA', 'BBBB'], exact: 1 }],
      [[exactHit('AAAA'), exactHit('BBBB')], { entries: ['AAAA', 'BBBB'], exact: 2 }],
    ] as const) {
      const none = { ...good(), hits: undefined };
      const answer = { responses: [hits.length === 0 ? none : good(...hits), none] };
      expect(await ask(answering(answer))).to.deep.equal([expected, { entries: [], exact: 0 }]);
    }
  });

  it('reads the same from a response in any other JSON format', async () => {
    const other = {
      status: 200,
      hits: { hits: [exactHit('AAAA'), hit('BBBB')] },
      _shards: { failed: 0 },
      timed_out: false,
    };
    const hits = await ask(
      answering(JSON.stringify({ responses: [other, { ...good(), hits: undefined }] }, null, 2)),
    );
    expect(hits).to.deep.equal([
      { entries: ['AAAA', 'BBBB'], exact: 1 },
      { entries: [], exact: 0 },
    ]);
  });

  it('never accepts a partial response', async () => {
    for (const partial of [
      { ...good(hit('AAAA')), timed_out: true },
      { ...good(hit('AAAA')), _shards: { failed: 1 } },
      { error: { type: 'es_rejected_execution_exception', reason: 'queue is full' }, status: 429 },
      { error: { type: 'search_phase_execution_exception', reason: 'all shards failed' }, status: 503 },
    ]) {
      expect(await ask(answering({ responses: [good(), partial] }))).to.be.instanceOf(EngineUnavailableError);
      expect(await ask(answering({ responses: [partial, good()] }))).to.be.instanceOf(EngineUnavailableError);
    }
  });

  it('distinguishes a missing index, a rejected request and an unavailable engine', async () => {
    const gone = { error: { type: 'index_not_found_exception', reason: 'no such index' }, status: 404 };
    expect(await ask(answering({ responses: [gone, gone] }))).to.be.instanceOf(IndexGoneError);
    const refused = { error: { type: 'parsing_exception', reason: 'unknown query' }, status: 400 };
    const error = await ask(answering({ responses: [refused, refused] }));
    expect(error).to.be.instanceOf(Error).and.not.to.be.instanceOf(EngineUnavailableError);
    for (const status of [429, 500, 503, 401]) {
      expect(await ask(answering('{}', status)), String(status)).to.be.instanceOf(EngineUnavailableError);
    }
  });

  // These wait for nodes that do not respond.
  const itConcurrently = concurrentTests();

  itConcurrently('gives up on a stalled server within two seconds', async () => {
    const began = Date.now();
    expect(await ask(() => undefined)).to.be.instanceOf(EngineUnavailableError);
    expect(Date.now() - began).to.be.lessThan(2000);
  });

  itConcurrently('tries a third node within two seconds if two hang', async () => {
    const hangs: RequestListener = () => undefined;
    const whole = answering({ responses: [good(), good()] });
    for (const nodes of [
      [hangs, hangs, whole],
      [hangs, whole, hangs],
      [whole, hangs, hangs],
    ]) {
      const began = Date.now();
      expect(await ask(...nodes)).to.deep.equal([
        { entries: [], exact: 0 },
        { entries: [], exact: 0 },
      ]);
      expect(Date.now() - began).to.be.lessThan(2000);
    }
  });

  itConcurrently('gives the last node the time that the others have left', async () => {
    const breaks: RequestListener = (request) => request.socket.destroy();
    const whole = answering({ responses: [good(), good()] });
    const slow: RequestListener = (request, response) => {
      setTimeout(() => whole(request, response), 1200);
    };
    // The second node is the first one asked.
    for (const nodes of [
      [slow, breaks],
      [slow, breaks, breaks],
    ]) {
      expect(await ask(...nodes)).to.deep.equal([
        { entries: [], exact: 0 },
        { entries: [], exact: 0 },
      ]);
    }
  });

  itConcurrently('stops retrying slow searches while all nodes are slow', async () => {
    let requests = 0;
    const slow: RequestListener = (_request, response) => {
      requests++;
      setTimeout(() => response.end(JSON.stringify({ responses: [good(), good()] })), 1000);
    };
    await withPool([slow, slow, slow], async (pool) => {
      const isAnswered = () =>
        askPool(pool).then(
          () => true,
          () => false,
        );
      const searches = 40;
      let answered = 0;
      for (let wave = 0; wave < 3; wave++) {
        const before = requests;
        const outcomes = await Promise.all(Array.from({ length: searches }, isAnswered));
        answered = outcomes.filter(Boolean).length;
        if (wave === 2) expect(requests - before, 'requests').to.equal(searches);
      }
      expect(answered).to.equal(searches);
    });
  });

  itConcurrently('lets every search reach a third node while one hangs and others are quick', async () => {
    let isHanging = false;
    const quick = answering({ responses: [good(), good()] });
    const hangs: RequestListener = (request, response) => {
      if (!isHanging) quick(request, response);
    };
    await withPool([hangs, quick, quick], async (pool) => {
      for (let i = 0; i < 300; i++) await askPool(pool);
      isHanging = true;
      const answers = await Promise.all(Array.from({ length: 48 }, () => askPool(pool)));
      expect(answers).to.have.length(48);
    });
  });

  itConcurrently('gives up within two seconds if four nodes hang', async () => {
    const hangs: RequestListener = () => undefined;
    const began = Date.now();
    expect(await ask(hangs, hangs, hangs, hangs)).to.be.instanceOf(EngineUnavailableError);
    expect(Date.now() - began).to.be.lessThan(2000);
  });

  const away: [what: string, listener: RequestListener | undefined][] = [
    ['cannot be reached', undefined],
    ['is starting or has no master', answering('{}', 503)],
    ['hangs', () => undefined],
    ['hangs in the middle of a response', (_request, response) => void response.write('{"responses":[')],
  ];
  for (const [what, listener] of away) {
    itConcurrently(`tries the next node within two seconds if one ${what}`, async () => {
      const whole = answering({ responses: [good(), good()] });
      for (const nodes of [
        [listener, whole],
        [whole, listener],
      ]) {
        const began = Date.now();
        expect(await ask(...nodes)).to.deep.equal([
          { entries: [], exact: 0 },
          { entries: [], exact: 0 },
        ]);
        expect(Date.now() - began).to.be.lessThan(2000);
      }
    });
  }

  it('tries the next node if one cannot search a copy of the index', async () => {
    const failed = { error: { type: 'search_phase_execution_exception', reason: 'all shards failed' } };
    for (const partial of [
      { ...failed, status: 503 },
      { ...failed, status: 500 },
      { ...good(hit('AAAA')), _shards: { failed: 1 } },
      { ...good(hit('AAAA')), timed_out: true },
    ]) {
      const stale = answering({ responses: [good(), partial] });
      const whole = answering({ responses: [good(), good(hit('AAAA'))] });
      for (const nodes of [
        [stale, whole],
        [whole, stale],
        [stale, stale, whole],
      ]) {
        expect(await ask(...nodes)).to.deep.equal([
          { entries: [], exact: 0 },
          { entries: ['AAAA'], exact: 0 },
        ]);
      }
    }
  });

  itConcurrently('sends few searches to a node that has failed until it responds quickly again', async () => {
    let isDown = true;
    let arrived = 0;
    const starting: RequestListener = (request, response) => {
      arrived++;
      if (isDown) request.socket.destroy();
      else setTimeout(() => answering({ responses: [good(), good()] })(request, response), 200);
    };
    const quick = answering({ responses: [good(), good()] });
    const test = async (pool: SearchPool) => {
      const wave = async (searches: number) => {
        arrived = 0;
        await Promise.all(Array.from({ length: searches }, () => askPool(pool)));
        return arrived;
      };
      await wave(30);
      isDown = false;
      // More than the others are preferred for, too.
      expect(await wave(48), 'during its backoff').to.equal(0);
      await pause(NODE_BACKOFF_MS);
      expect(await wave(30), 'after its backoff').to.equal(1);
      expect(await wave(30), 'after one quick response').to.equal(2);
      for (let i = 0; i < 4; i++) await wave(30);
      expect(await wave(30), 'after many quick responses').to.equal(10);
    };
    // A stall of this process must not count as a slow response.
    await withPool([starting, quick, quick], test, { timeoutMs: 5000 });
  });

  it('does not avoid a node because of an index that no node can search', async () => {
    const failed = {
      error: { type: 'search_phase_execution_exception', reason: 'all shards failed' },
      status: 503,
    };
    const requests = [0, 0];
    const nodes = requests.map((_count, node): RequestListener => (request, response) => {
      const isBroken = request.url?.startsWith('/broken') === true;
      if (!isBroken) requests[node] = (requests[node] ?? 0) + 1;
      answering({ responses: [isBroken ? failed : good()] })(request, response);
    });
    await withPool(nodes, async (pool) => {
      const search = (index: string) =>
        runSearches(pool, index, [{}], 'test').catch((error: unknown) => error);
      expect(await search('broken')).to.be.instanceOf(EngineUnavailableError);
      for (let i = 0; i < 10; i++) await search('index');
    });
    expect(requests).to.deep.equal([5, 5]);
  });

  it('reports an incomplete response as unavailable', async () => {
    const outcomes: string[] = [];
    const onSearch = (_node: string, outcome: string) => void outcomes.push(outcome);
    for (const partial of [
      { error: { type: 'es_rejected_execution_exception', reason: 'queue is full' }, status: 429 },
      { error: { type: 'search_phase_execution_exception', reason: 'all shards failed' }, status: 503 },
      { ...good(), timed_out: true },
    ]) {
      const use = (pool: SearchPool) => askPool(pool).catch(() => undefined);
      await withPool([answering({ responses: [good(), partial] })], use, { onSearch });
    }
    expect(outcomes).to.deep.equal(['unavailable', 'unavailable', 'unavailable']);
  });

  // It blocks the thread, so it must not run together with those that measure time.
  it('accepts a response that arrived in time while this process was suspended', async () => {
    const text = JSON.stringify({ responses: [good(hit('A'.repeat(40_000))), good()] });
    const node = new Worker(NODE, { eval: true, workerData: text });
    const [port] = (await once(node, 'message')) as [number];
    const pool = new SearchPool({ nodes: [`http://127.0.0.1:${port}`], apiKey: undefined });
    try {
      const answer = askPool(pool);
      await once(node, 'message');
      suspend(3000);
      expect((await answer)[0]?.entries).to.have.length(1);
    } finally {
      await pool.close();
      await node.terminate();
    }
  });

  itConcurrently('fails within two seconds if no node responds', async () => {
    const expectUnavailable = async (listener: RequestListener | undefined) => {
      const began = Date.now();
      expect(await ask(listener, listener)).to.be.instanceOf(EngineUnavailableError);
      expect(Date.now() - began).to.be.lessThan(2000);
    };
    await Promise.all(away.map(([, listener]) => expectUnavailable(listener)));
  });

  it('does not try the next node if one is busy', async () => {
    const rejected = {
      error: { type: 'es_rejected_execution_exception', reason: 'queue is full' },
      status: 429,
    };
    for (const respond of [answering('{}', 429), answering({ responses: [good(), rejected] })]) {
      let requests = 0;
      const busy: RequestListener = (request, response) => {
        requests++;
        respond(request, response);
      };
      expect(await ask(busy, busy)).to.be.instanceOf(EngineUnavailableError);
      expect(requests).to.equal(1);
    }
  });

  it('retries exactly once after a broken connection', async () => {
    let requests = 0;
    const breaking: RequestListener = (request) => {
      requests++;
      request.socket.destroy();
    };
    expect(await ask(breaking)).to.be.instanceOf(EngineUnavailableError);
    expect(requests).to.equal(2);
  });
});
