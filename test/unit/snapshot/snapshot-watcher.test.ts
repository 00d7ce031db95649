import { setImmediate } from 'node:timers/promises';
import { errors, type Client, type DiagnosticResult } from '@elastic/elasticsearch';
import { expect } from 'chai';
import pino from 'pino';
import { ElasticsearchUnavailableError } from '../../../src/elasticsearch/elasticsearch-errors.js';
import { Chains } from '../../../src/snapshot/chains.js';
import {
  NotInitializedError,
  SnapshotGoneError,
  SnapshotWatcher,
} from '../../../src/snapshot/snapshot-watcher.js';
import { metaWith } from '../../support/snapshot-meta.js';

const ALIAS = 'r-packages';
const IDS = ['20260101t000000z-00000001', '20260102t000000z-00000002', '20260103t000000z-00000003'] as const;
const UNKNOWN = '20200101t000000z-0123abcd';
const META = {
  ...metaWith(1),
  lineage: { ancestors: [], added: 0, removed: 0, updated: 0 },
};

/** An index in the response of Elasticsearch. */
function indexOf(id: string, alias: string, _meta: object = META, closed = false) {
  const settings = { index: { number_of_shards: '1', creation_date: '1', verified_before_close: closed } };
  return { [`${ALIAS}-${id}`]: { aliases: { [alias]: {} }, mappings: { _meta }, settings } };
}

function responseError(statusCode: number, type: string): Error {
  const body = { error: { type, reason: type }, status: statusCode };
  return new errors.ResponseError({ statusCode, body, warnings: null, meta: {} } as DiagnosticResult);
}

const ABSENT = responseError(404, 'index_not_found_exception');
const REFUSAL = responseError(400, 'search_phase_execution_exception');

/** A watcher of an Elasticsearch that responds with `found` and `searched`, or rejects if they are errors. */
function watched(found: object = indexOf(IDS[0], ALIAS)) {
  const engine = { found, searched: {} as object, requests: [] as string[] };
  const respond = async (request: string, response: () => object) => {
    engine.requests.push(request);
    await setImmediate();
    const value = response();
    if (value instanceof Error) throw value;
    return value;
  };
  const client = {
    indices: {
      get: ({ index }: { index: string[] }) => respond(`get ${index.join()}`, () => engine.found),
    },
    search: ({ index }: { index: string }) => respond(`search ${index}`, () => engine.searched),
  };
  const lines: string[] = [];
  const log = pino(
    { base: null },
    { write: (line: string) => lines.push((JSON.parse(line) as { msg: string }).msg) },
  );
  return { engine, lines, watcher: new SnapshotWatcher(client as unknown as Client, ALIAS, log) };
}

describe('SnapshotWatcher', () => {
  it('reads both aliases with one request, before the second snapshot, too', async () => {
    const { engine, watcher } = watched();
    await watcher.refresh();
    expect(watcher.find(IDS[0])).to.equal(watcher.current);
    engine.found = { ...indexOf(IDS[1], ALIAS), ...indexOf(IDS[0], `${ALIAS}-previous`) };
    await watcher.refresh();
    expect(watcher.current?.id).to.equal(IDS[1]);
    expect(watcher.find(IDS[0])?.index).to.equal(`${ALIAS}-${IDS[0]}`);
    expect(engine.requests).to.deep.equal(Array(2).fill(`get ${ALIAS},${ALIAS}-previous*`));
  });

  it('ignores the aliases of other registries that the pattern of the previous alias matches', async () => {
    const { watcher } = watched({
      ...indexOf(IDS[1], ALIAS),
      ...indexOf(IDS[0], `${ALIAS}-previous-packages`),
    });
    await watcher.refresh();
    expect(watcher.state).to.equal('present');
    expect(watcher.find(IDS[0])).to.equal(undefined);
  });

  for (const [what, found, state, counts] of [
    ['an index', indexOf(IDS[0], ALIAS), 'present', true],
    ['no alias', ABSENT, 'absent', true],
    ['a closed index', indexOf(IDS[0], ALIAS, META, true), 'unusable', true],
    ['an index of another version', indexOf(IDS[0], ALIAS, {}), 'unusable', true],
    ['several indices', { ...indexOf(IDS[0], ALIAS), ...indexOf(IDS[1], ALIAS) }, 'unusable', true],
    ['a response without an index', {}, 'unreachable', false],
    ['no response', new errors.ConnectionError('x'), 'unreachable', false],
    ['401', responseError(401, 'security_exception'), 'unreachable', false],
    ['403', responseError(403, 'security_exception'), 'unreachable', false],
    ['503', responseError(503, 'cluster_block_exception'), 'unreachable', false],
  ] as const) {
    it(`is ${state} after ${what}`, async () => {
      const { watcher, engine } = watched(found);
      expect(watcher).to.include({ state: 'unreachable', stateReason: undefined });
      await watcher.refresh();
      expect(watcher).to.include({ state, hasReachedElasticsearch: counts });
      expect(watcher.stateReason === undefined).to.equal(state === 'present' || state === 'absent');
      const selected = await Promise.resolve(watcher.select(UNKNOWN)).catch((error: unknown) => error);
      const error = { present: SnapshotGoneError, absent: NotInitializedError }[state as string];
      expect(selected).to.be.instanceOf(error ?? ElasticsearchUnavailableError);
      // What has been reached stays so.
      engine.found = new Error('away');
      await watcher.refresh();
      expect(watcher).to.include({ state: 'unreachable', hasReachedElasticsearch: counts });
    });
  }

  it('keeps the last known snapshots while Elasticsearch is unavailable', async () => {
    const { watcher, engine, lines } = watched({
      ...indexOf(IDS[1], ALIAS),
      ...indexOf(IDS[0], `${ALIAS}-previous`),
    });
    await watcher.refresh();
    const served = engine.found;
    for (const found of [new Error('away'), indexOf(IDS[2], ALIAS, META, true)]) {
      engine.found = found;
      for (let i = 0; i < 2; i++) await watcher.refresh();
      expect(watcher.served().id).to.equal(IDS[1]);
      expect((await watcher.select(IDS[0])).id).to.equal(IDS[0]);
    }
    engine.found = served;
    await watcher.refresh();
    expect(lines).to.deep.equal([
      'serving another snapshot',
      'Elasticsearch is unavailable at ELASTICSEARCH_URL',
      'the index behind the alias is closed: open it, or rebuild',
      'the snapshot can be read again',
    ]);
  });

  it('looks once for concurrent requests with unknown ids', async () => {
    const { watcher, engine } = watched();
    const ask = (count: number) =>
      Promise.allSettled(Array.from({ length: count }, async () => watcher.select(UNKNOWN)));
    expect(await ask(20)).to.have.length(20);
    expect(engine.requests).to.have.length(1);
    await ask(1);
    expect(engine.requests).to.have.length(2);
    // A running poll may have missed the flip, so it is not reused.
    const polling = watcher.refresh();
    await setImmediate();
    engine.found = indexOf(IDS[1], ALIAS);
    expect((await watcher.select(IDS[1])).id).to.equal(IDS[1]);
    await polling;
  });

  it('looks at most once for changes since an unknown snapshot', async () => {
    const { watcher, engine } = watched();
    await watcher.refresh();
    const chains = new Chains(watcher);
    for (const [id, polls] of [
      [undefined, 1],
      [IDS[0], 0],
      [IDS[2], 1],
    ] as const) {
      engine.requests.length = 0;
      const error = await chains.select(id, UNKNOWN).catch((failure: unknown) => failure);
      expect(error).to.be.instanceOf(SnapshotGoneError);
      expect(engine.requests, id).to.have.length(polls);
    }
  });

  it('searches in each poll after a refused search, until a search succeeds', async () => {
    const { watcher, engine, lines } = watched();
    await watcher.refresh();
    engine.searched = REFUSAL;
    watcher.onRefused();
    for (let i = 0; i < 2; i++) {
      await watcher.refresh();
      expect(watcher.state).to.equal('unusable');
    }
    expect(watcher.stateReason).to.match(/^Elasticsearch refuses searches/);
    // A flip is noticed, and the new index is searched.
    engine.found = { ...indexOf(IDS[1], ALIAS), ...indexOf(IDS[0], `${ALIAS}-previous`) };
    await watcher.refresh();
    expect(watcher).to.deep.include({ state: 'unusable' });
    expect(watcher.current?.id).to.equal(IDS[1]);
    engine.searched = {};
    for (let i = 0; i < 2; i++) {
      await watcher.refresh();
      expect(watcher.state).to.equal('present');
    }
    const searches = engine.requests.filter((request) => request.startsWith('search'));
    expect(searches).to.deep.equal([0, 0, 1, 1].map((i) => `search ${ALIAS}-${IDS[i]}`));
    expect(lines.filter((line) => line.startsWith('Elasticsearch refuses'))).to.have.length(1);
  });
});
