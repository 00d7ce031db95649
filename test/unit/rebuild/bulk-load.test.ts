import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import type { PackageEntry } from '../../../src/search/package-document.js';
import type { ValidatedDataset } from '../../../src/rebuild/validate.js';
import { createLogger } from '../../../src/log.js';
import { bulkLoad } from '../../../src/rebuild/bulk-load.js';
import type { Row } from '../../../src/rebuild/rows.js';
import { concurrentTests } from '../../support/concurrent-tests.js';
import { packagesNamed } from '../../support/datasets.js';

const packages = packagesNamed(Array.from({ length: 30_000 }, (_, i) => `package-${i}`));
const dataset: ValidatedDataset = {
  total: packages.length,
  duplicateLines: new Set(),
  urlHost: 'registry.example',
  ordinalOf: (no) => no - 1,
};

async function* rows(): AsyncGenerator<Row[]> {
  for (let from = 0; from < packages.length; from += 1000) {
    yield packages.slice(from, from + 1000).map((entry, i) => ({ line: from + i + 2, entry }));
    await Promise.resolve();
  }
}

const GOOD = { errors: false };
const refusal = (type: string) => ({ errors: true, items: [{ index: { error: { type, reason: 'why' } } }] });

/** Loads all packages. `answer(n)` is the response to request n: a body, a status, or 0 to disconnect. */
async function load(
  answer: (n: number) => object | number | Promise<object>,
  options: Partial<{
    dataset: ValidatedDataset;
    signal: AbortSignal;
    rows: AsyncIterable<Row[]>;
    throttled: boolean;
    timeoutMs: number;
  }> = {},
) {
  const bodies: string[] = [];
  const paths = new Set<string>();
  let inFlight = 0;
  let mostInFlight = 0;
  const server = createServer((request, response) => {
    mostInFlight = Math.max(mostInFlight, ++inFlight);
    void text(request).then(async (body) => {
      bodies.push(body);
      paths.add(request.url ?? '');
      const answered = await answer(bodies.length);
      await pause(5);
      inFlight--;
      if (answered === 0) {
        response.destroy();
        return;
      }
      response.setHeader('X-Elastic-Product', 'Elasticsearch');
      response.setHeader('Content-Type', 'application/json');
      if (typeof answered === 'number') response.statusCode = answered;
      response.end(JSON.stringify(typeof answered === 'number' ? {} : answered));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = new Client({
    node: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requestTimeout: options.timeoutMs ?? 30_000,
  });
  const counts: number[] = [];
  const failure = await bulkLoad(client, 'index', options.rows ?? rows(), options.dataset ?? dataset, {
    throttled: options.throttled ?? false,
    stallMs: 1500,
    log: createLogger('silent', false),
    signal: options.signal ?? new AbortController().signal,
    onRows: (count) => counts.push(count),
  }).catch((error: unknown) => error);
  await client.close();
  server.close();
  server.closeAllConnections();
  return { bodies, counts, failure, paths, mostInFlight };
}

const documents = (bodies: string[]) =>
  bodies.flatMap((body) => body.trimEnd().split('\n')).map((line) => JSON.parse(line) as object);

describe('bulkLoad', function () {
  this.timeout(10_000);

  it('sends every package once, under its number, in requests of bounded size', async () => {
    const { bodies, counts, failure } = await load(() => GOOD);
    expect(failure).to.be.undefined;
    expect(bodies.length).to.be.greaterThan(3);
    for (const body of bodies) expect(body.length).to.be.lessThan(1_001_000);
    const lines = documents(bodies);
    expect(lines).to.have.length(2 * packages.length);
    expect(counts.at(-1)).to.equal(packages.length);
    const first = lines.findIndex((line) => 'index' in line && (line.index as { _id: string })._id === '1');
    expect(lines[first + 1]).to.include({ ...packages[0], ordinal: 0 });
    const { entry } = lines[first + 1] as { entry: string };
    expect(JSON.parse(`${Buffer.from(entry, 'base64').toString()}}`)).to.deep.equal(packages[0]);
  });

  it('skips bad rows and duplicates', async () => {
    const [one, other] = packagesNamed(['one', 'other']) as [PackageEntry, PackageEntry];
    const some = async function* (): AsyncGenerator<Row[]> {
      yield [
        { line: 2, entry: one },
        { line: 3, reason: 'wrong' },
        { line: 4, entry: other },
      ];
      await Promise.resolve();
    };
    const { bodies, failure } = await load(() => GOOD, {
      rows: some(),
      dataset: { ...dataset, total: 1, duplicateLines: new Set([4]) },
    });
    expect(failure).to.be.undefined;
    expect(documents(bodies)).to.have.length(2);
  });

  it('keeps two requests in flight, or one while throttled', async () => {
    expect((await load(() => GOOD)).mostInFlight).to.equal(2);
    expect((await load(() => GOOD, { throttled: true })).mostInFlight).to.equal(1);
  });

  it('writes only to the loading alias, which is deleted with its index', async () => {
    const [path, ...others] = (await load(() => GOOD)).paths;
    expect(path)
      .to.match(/^\/index-loading\/_bulk\?/)
      .and.contain('require_alias=true');
    expect(others).to.deep.equal([]);
  });

  // These wait a second or more before they retry.
  const itConcurrently = concurrentTests();
  const passing: [what: string, answer: object | number][] = [
    ['too busy for a document', refusal('es_rejected_execution_exception')],
    ['without a shard for a document', refusal('unavailable_shards_exception')],
    ['too busy for the request', 429],
    ['without a master', 503],
    ['gone before it responds', 0],
  ];
  for (const [what, answer] of passing) {
    itConcurrently(`retries a request if the engine is ${what}`, async () => {
      const { bodies, failure } = await load((n) => (n === 1 ? answer : GOOD));
      expect(failure).to.be.undefined;
      expect(new Set(bodies).size).to.equal(bodies.length - 1);
    });
  }

  it('retries a request that times out, while the other one in flight continues', async () => {
    const never = new Promise<object>(() => undefined);
    const { bodies, failure } = await load((n) => (n === 1 ? never : pause(250, GOOD)), { timeoutMs: 1500 });
    expect(failure).to.be.undefined;
    expect(new Set(bodies).size).to.equal(bodies.length - 1);
  });

  itConcurrently('gives up if the failure persists, and reports the reason', async () => {
    const [busy, away] = await Promise.all([
      load(() => refusal('circuit_breaking_exception')),
      load(() => 0),
    ]);
    expect(busy.failure).to.have.property(
      'message',
      'Elasticsearch rejected a document: circuit_breaking_exception: why',
    );
    expect(away.failure).to.have.property('message', 'Elasticsearch did not respond for 1.5 seconds');
  });

  it('fails on a rejected document, and reports the reason', async () => {
    const { bodies, failure } = await load((n) => (n === 2 ? refusal('document_parsing_exception') : GOOD));
    expect(failure).to.be.instanceOf(Error);
    expect((failure as Error).message).to.equal(
      'Elasticsearch rejected a document: document_parsing_exception: why',
    );
    const all = await load(() => GOOD);
    expect(bodies.length, 'requests after the rejection').to.be.lessThan(all.bodies.length);
  });

  it('fails if rows and dataset disagree, or if reading rows fails', async () => {
    const fewer = await load(() => GOOD, { dataset: { ...dataset, total: packages.length + 1 } });
    expect(fewer.failure).to.have.property('message', '30000 of 30001 packages were loaded');
    const broken = async function* (): AsyncGenerator<Row[]> {
      yield* rows();
      throw new Error('the file is gone');
    };
    expect((await load(() => GOOD, { rows: broken() })).failure).to.have.property(
      'message',
      'the file is gone',
    );
  });

  it('stops at once when aborted', async () => {
    const stop = new AbortController();
    const { bodies, failure } = await load(
      () => {
        stop.abort(new Error('stopped'));
        return GOOD;
      },
      { signal: stop.signal },
    );
    expect(failure).to.be.instanceOf(Error);
    expect(bodies.length).to.be.lessThan(6);
  });
});
