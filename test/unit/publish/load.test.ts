import { setTimeout as pause } from 'node:timers/promises';
import { errors } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { load, type NewDocument } from '../../../src/publish/load.js';
import { packageDocument, type PackageEntry } from '../../../src/snapshot/package-document.js';
import { streamOf } from '../../support/batches.js';
import { packagesNamed } from '../../support/datasets.js';
import { errorResponse, interceptedClient } from '../../support/intercepted-client.js';
import { STEP } from '../../support/step.js';

// Long names: few packages fill several requests.
const packages = packagesNamed(Array.from({ length: 2000 }, (_, i) => `${'語'.repeat(165)}-${i}`));

const documentsOf = (entries: PackageEntry[]): AsyncIterable<NewDocument[]> =>
  streamOf(entries.map((entry) => [packageDocument(entry, entry.no - 1)]));

const REJECTED = 'Elasticsearch rejected a document: ';
const GOOD = { errors: false };
const refusal = (...types: string[]) => ({ errors: true, items: [{}, ...types.map((type) => ({ index: { error: { type, reason: 'why' } } }))] }); // prettier-ignore
const AWAY = new errors.ConnectionError('the connection was closed');

/** Loads documents. `answer(n)` is the response to request n. */
async function send(
  answer: (n: number) => object = () => GOOD,
  { documents = documentsOf(packages), signal = STEP.signal, inFlight = 2, stallMs = 50 } = {},
) {
  const bodies: string[] = [];
  const targets = new Set<string>();
  let received = 0;
  let mostInFlight = 0;
  const client = interceptedClient(async ({ method, path, querystring, bulkBody }) => {
    mostInFlight = Math.max(mostInFlight, ++received);
    targets.add(`${method} ${path} ${JSON.stringify(querystring)}`);
    const answered = answer(bodies.push(bulkBody as string));
    await pause(2);
    received--;
    if (answered instanceof Error) throw answered;
    return answered;
  });
  const counts: number[] = [];
  const options = {
    ...STEP,
    signal,
    inFlight,
    stallMs,
    pauseMs: 10,
    onRows: (count: number) => counts.push(count),
  };
  const loaded = await load(client, 'index', documents, options).catch((error: unknown) => error as Error);
  const failure = loaded instanceof Error ? loaded : undefined;
  return { bodies, counts, loaded, failure, targets: [...targets], mostInFlight };
}

const linesOf = (bodies: string[]) =>
  bodies.flatMap((body) => body.trimEnd().split('\n')).map((line) => JSON.parse(line) as object);

describe('load', () => {
  it('sends every package once, under its number, in requests of bounded size to the loading alias', async () => {
    const { bodies, counts, loaded, targets } = await send();
    expect(loaded).to.equal(packages.length);
    expect(bodies.length).to.be.greaterThan(4);
    // Proxies accept 1 MiB by default.
    for (const body of bodies) expect(Buffer.byteLength(body)).to.be.lessThan(2 ** 20);
    expect(counts.at(-1)).to.equal(packages.length);
    const lines = linesOf(bodies);
    const ids = lines.flatMap((line) => ('index' in line ? [(line.index as { _id: string })._id] : []));
    expect(ids).to.have.members(packages.map(({ no }) => String(no)));
    expect(lines).to.have.length(2 * packages.length);
    const document = lines[2 * ids.indexOf('1') + 1] as { entry: string };
    expect(document).to.include({ ...packages[0], ordinal: 0 });
    // The alias is deleted with its index.
    const query = { require_alias: true, filter_path: 'errors,items.*.error' };
    expect(targets).to.deep.equal([`POST /index-loading/_bulk ${JSON.stringify(query)}`]);
  });

  it('keeps as many requests in flight as it is told', async () => {
    expect((await send()).mostInFlight).to.equal(2);
    expect((await send(undefined, { inFlight: 1 })).mostInFlight).to.equal(1);
  });

  for (const [what, answer] of [
    ['too busy for a document', refusal('es_rejected_execution_exception')],
    ['without a shard for a document', refusal('unavailable_shards_exception')],
    ['gone before it responds', AWAY],
  ] as const) {
    it(`retries a request if the engine is ${what}`, async () => {
      const { bodies, failure } = await send((n) => (n === 1 ? answer : GOOD));
      expect(failure).to.be.undefined;
      expect(new Set(bodies).size).to.equal(bodies.length - 1);
    });
  }

  it('reports why it gives up if the failure persists', async () => {
    const busy = await send(() => refusal('circuit_breaking_exception'));
    expect(busy.failure).to.have.property('message', `${REJECTED}circuit_breaking_exception`);
    expect(busy.bodies.length, 'requests').to.be.greaterThan(2);
    const away = await send(() => AWAY);
    expect(away.failure).to.have.property('message', 'Elasticsearch did not respond for 0.05 seconds');
  });

  it('fails at once on a rejected document, even while another request is retried', async () => {
    const began = performance.now();
    const answer = (n: number) =>
      n === 2 ? refusal('es_rejected_execution_exception', 'document_parsing_exception') : errorResponse(429);
    const { bodies, failure } = await send(answer, { stallMs: 10_000 });
    expect(failure).to.have.property('message', `${REJECTED}document_parsing_exception`);
    expect(failure).to.have.nested.property('cause.message', 'why');
    expect(performance.now() - began).to.be.lessThan(5000);
    expect(bodies.length, 'requests after the rejection').to.be.lessThan(5);
  });

  it('fails if the documents cannot be read', async () => {
    const { failure } = await send(undefined, { documents: streamOf([[undefined as never]]) });
    expect(failure).to.be.instanceOf(TypeError);
  });
});
