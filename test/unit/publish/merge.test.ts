import { rejects } from 'node:assert/strict';
import { expect } from 'chai';
import { assertOneSegment, merge } from '../../../src/publish/merge.js';
import { errorResponse, interceptedClient, type SentRequest } from '../../support/intercepted-client.js';
import { STEP } from '../../support/step.js';

const _shards = { failed: 0, successful: 1 };
const MERGED = { num_docs: 3, committed: true, search: true };

/** `onRead` is called when the state is read. It may throw. */
type State = Partial<{
  segments: object[];
  merging: number;
  merges: number;
  bytes: number;
  onRead: () => void;
}>;

const DONE: State = { segments: [MERGED] };
const LOADED: State = { segments: [MERGED, MERGED] };

/** An index that has one of these states before the merge, and at each poll. The last one lasts. */
function merging(states: State[], onMerge: (request: SentRequest) => unknown = () => ({})) {
  const requests: string[] = [];
  const bytes: number[][] = [];
  let reads = 0;
  const client = interceptedClient((request) => {
    const api = request.path.replace(/^\/packages\//, '');
    requests.push(api);
    const { onRead, segments = [], merging, merges, ...state } = states[reads] ?? states.at(-1) ?? {};
    const primaries = { merges: { current: merging, total: merges }, store: { size_in_bytes: state.bytes } };
    if (api === '_forcemerge') return onMerge(request);
    if (api === '_count') return { count: 3, _shards };
    if (api === '_segments') return { _shards, indices: { packages: { shards: { 0: [{ segments }] } } } };
    if (!api.startsWith('_stats')) return {};
    reads++;
    onRead?.();
    return { indices: { packages: { primaries } } };
  });
  const onBytes = (...progress: number[]) => bytes.push(progress);
  const run = (options = {}) =>
    merge(client, 'packages', 3, { ...STEP, pauseMs: 1, stallMs: 20, onBytes, ...options });
  return { run, requests, bytes, requested: () => requests.filter((api) => api === '_forcemerge').length };
}

describe('merge', () => {
  it('requests a merge once, makes its result searchable and blocks writes', async () => {
    const { run, requests } = merging([LOADED, { ...LOADED, bytes: 1 }, { ...LOADED, merging: 1 }, DONE]);
    await run();
    const look = ['_segments', '_stats/merge%2Cstore'];
    const count = ['_refresh', '_count'];
    const polls = [...look, '_forcemerge', '_refresh', ...look, ...look];
    expect(requests).to.deep.equal([...count, ...look, ...polls, '_block/write', ...count]);
  });

  it('requests the merge again after a node was away', async () => {
    const onRead = () => {
      throw errorResponse(503);
    };
    const { run, requested } = merging([LOADED, LOADED, { onRead }, { ...LOADED, merges: 1 }, DONE]);
    await run();
    expect(requested()).to.equal(2);
  });

  it('requests a merge that is not running again each minute', async () => {
    const now = performance.now.bind(performance);
    let seconds = 0;
    performance.now = () => now() + seconds * 1000;
    const halfMinutes = [1, 2, 3, 4].map((merges) => ({ ...LOADED, merges, onRead: () => (seconds += 30) }));
    const { run, requested } = merging([...halfMinutes, DONE]);
    await run({ stallMs: 60_000 }).finally(() => (performance.now = now));
    expect(requested()).to.equal(2);
  });

  it('ends with the reason if Elasticsearch rejects the request', async () => {
    const refusal = errorResponse(403);
    await rejects(merging([LOADED], () => Promise.reject(refusal)).run(), refusal);
  });

  it('continues after the response to its request was lost', () =>
    merging([LOADED, LOADED, DONE], () => Promise.reject(errorResponse(504))).run());

  it('ends the request for the merge when it is done', async () => {
    let merge: AbortSignal | undefined;
    await merging([LOADED, LOADED, DONE], ({ signal }) => (merge = signal)).run();
    expect(merge).to.have.property('aborted', true);
  });

  for (const [what, ...segments] of [
    ['has two segments', MERGED, MERGED],
    ['has no segment'],
    ['lacks documents', { ...MERGED, num_docs: 2 }],
    ['is not on disk', { ...MERGED, committed: false }],
    ['is not searchable', { ...MERGED, search: false }],
  ] as [string, ...object[]][]) {
    it(`waits while the index ${what}`, () =>
      rejects(merging([{ segments }]).run(), { message: 'the merge made no progress for 0.02 seconds' }));
  }

  it('reports the bytes written, up to the size of the index', async () => {
    const { run, bytes } = merging([...[100, 90, 150, 300].map((bytes) => ({ ...LOADED, bytes })), DONE]);
    await run();
    expect(bytes.slice(0, 3).flat()).to.deep.equal([0, 100, 50, 100, 100, 100]);
  });
});

describe('assertOneSegment', () => {
  const copyOf = (...search: boolean[]) => ({ segments: search.map((search) => ({ search })) });
  const away = 'the shard of the index did not respond';
  const segments = (count: number) => `a copy of packages has ${count} segments after it was merged to one`;

  // prettier-ignore
  for (const [what, shards, message, ...copies] of [
    ['a copy failed', { failed: 1, successful: 1 }, away, copyOf(true)],
    ['no copy responded', { failed: 0, successful: 0 }, away],
    ['a copy has nothing searchable', _shards, segments(0), copyOf(true), copyOf(false)],
    ['a copy has two segments', _shards, segments(2), copyOf(true), copyOf(true, true)],
  ] as [string, object, string, ...object[]][]) {
    it(`fails if ${what}: the order of results depends on it`, () => {
      const client = interceptedClient(() => ({ _shards: shards, indices: { packages: { shards: { 0: copies } } } }));
      return rejects(assertOneSegment(client, 'packages', { ...STEP, stallMs: 20, pauseMs: 5 }), { message });
    });
  }
});
