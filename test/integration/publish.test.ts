import { randomBytes } from 'node:crypto';
import { rejects } from 'node:assert/strict';
import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { SearchPool } from '../../src/elasticsearch/search-pool.js';
import { clean, findExisting, publish, type PublishContext } from '../../src/publish/publish.js';
import type { RetryOptions } from '../../src/publish/retry.js';
import { rollBack } from '../../src/publish/rollback.js';
import { aliasOf, changesIndexOf, snapshotIdOf } from '../../src/snapshot/index-names.js';
import type { FoundIndex } from '../../src/snapshot/snapshot.js';
import { packageDocument, type PackageEntry } from '../../src/snapshot/package-document.js';
import type { SnapshotMeta } from '../../src/snapshot/snapshot-meta.js';
import { streamOf } from '../support/batches.js';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { errorResponse, interceptedClient, type SentRequest } from '../support/intercepted-client.js';
import { metaWith } from '../support/snapshot-meta.js';
import { loggedStep, STEP, type LogLine } from '../support/step.js';

/** The first name is too short for a search. The last one is found among others. */
const NAMES = ['p', ...Array.from({ length: 99 }, (_, i) => `package-${99 - i}`)];
const PACKAGES = packagesNamed(NAMES);
const progress = { enter: () => {}, change: () => {} };
const OPTIONS = { signal: STEP.signal, replicas: '0', retention: 2, progress };
const NEW_CHAIN = { ancestors: [], added: 0, removed: 0, updated: 0 };

/** How a publication differs from that of `PACKAGES`. */
interface Given {
  packages?: PackageEntry[];
  meta?: Partial<SnapshotMeta>;
  /** Members of the last document. */
  last?: object;
  options?: Partial<typeof OPTIONS> & Pick<RetryOptions, 'stallMs' | 'pauseMs'>;
  /** What the snapshot that is served seems to be. */
  served?: Partial<FoundIndex>;
  onProgress?: (...progress: unknown[]) => void;
  /** Called before each request. May return what Elasticsearch responds. */
  intercept?: (request: SentRequest & { phase: string }) => unknown;
}

/** Refuses requests of a phase: `<phase> <method> <path>`. */
const refuse = (requests: RegExp, status = 400, reason = ''): Given => ({
  intercept: ({ method, path, phase }) => {
    if (requests.test(`${phase} ${method} ${path}`)) throw errorResponse(status, 'an_exception', reason);
  },
});

/** Changes the settings of the index before its load, or deletes it. */
const beforeLoad = (settings?: object): Given => ({
  intercept: async ({ phase, path }) => {
    const url = engines().elasticsearch.url + path.replace(/-loading.*/, settings ? '/_settings' : '');
    const change = settings && {
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(settings),
    };
    if (phase === 'loading') await fetch(url, { method: change ? 'PUT' : 'DELETE', ...change });
  },
});

const sameIds = PACKAGES.map((entry) => ({ ...entry, no: Math.min(entry.no, 99) }));
const updated = (count: number) =>
  PACKAGES.map((entry, i) => ({ ...entry, version: i < count ? '2' : '1.0.0' }));

// prettier-ignore
const FAILURES: [what: string, Given, message: string | RegExp][] = [
  ['its documents are too few', { meta: { total: 101 } }, '100 of 101 documents were loaded'],
  ['documents have the same id', { packages: sameIds }, /has 99 documents instead of 100$/],
  ['an ordinal is missing', { last: { ordinal: 101 } }, 'the new index has no package with the ordinal 99'],
  ['a name is not found', { last: { name: 'x' } }, 'the new index does not find the package "package-1"'],
  ['a document is invalid', { last: { ordinal: 'x' } }, 'Elasticsearch rejected a document: document_parsing_exception'],
  ['its index is deleted', beforeLoad(), 'Elasticsearch rejected a document: index_not_found_exception'],
  ['writes are blocked', beforeLoad({ 'index.blocks.write': true }), /rejected a document: cluster_block_exception$/],
  ['the disk is full', beforeLoad({ 'index.blocks.read_only_allow_delete': true }), /rejected a document: cluster_block_exception$/],
  ['its pipeline is missing', beforeLoad({ 'index.final_pipeline': 'none' }), /rejected a document: illegal_argument_exception$/],
  ['its metadata is invalid', { meta: { total: -1 } }, /^the _meta of the index would be invalid: total: /],
];

const NOT_RECORDED = 'the changes were not recorded: the snapshot starts a new chain';
const WRITE = 'action [write] is unauthorized';
const REFUSED =
  'ELASTICSEARCH_REBUILD_API_KEY does not allow write: /changes is unavailable; make keys with npm run keys';

// prettier-ignore
const NEW_CHAINS: [what: string, Given, lineage: object | undefined, ...messages: string[]][] = [
  ['Elasticsearch rejects its request', refuse(/^comparing PUT .*_block/), NEW_CHAIN, `${NOT_RECORDED}: an_exception`],
  ['Elasticsearch does not respond', { ...refuse(/^comparing PUT .*_block/, 503), options: { stallMs: 300, pauseMs: 50 } }, NEW_CHAIN,
    'a rebuild request failed and is retried: an_exception', `${NOT_RECORDED}: Elasticsearch did not respond for 0.3 seconds`],
  ['the key lacks a privilege', refuse(/^comparing PUT .*_block/, 403, WRITE), undefined, `${REFUSED}: an_exception`],
  ['the chain cannot be recorded', refuse(/^comparing (PUT .*_mapping|DELETE)/), undefined, `${NOT_RECORDED}: an_exception`,
    'a new chain could not be recorded: /changes is unavailable: an_exception',
    'the index of changes could not be removed; the next rebuild tries again: an_exception'],
  ['old indices cannot be removed', { ...refuse(/^pruning POST/), options: { retention: 0 } }, undefined,
    ...[1, 2].map(() => 'an old index could not be removed; the next rebuild tries again: an_exception')],
  ['more than half of all names changed', { packages: updated(51) }, NEW_CHAIN, `${NOT_RECORDED}: more than half of all names changed`],
  ['the previous snapshot is closed', { served: { closed: true } }, NEW_CHAIN, `${NOT_RECORDED}: the index of the previous snapshot is closed`],
  ['the previous snapshot is not readable', { served: { meta: undefined } }, NEW_CHAIN, `${NOT_RECORDED}: the _meta of the previous snapshot is not readable`],
  ['the previous snapshot has another rule', { meta: { name_rule: 'pypi' } }, NEW_CHAIN, `${NOT_RECORDED}: the previous snapshot has another NAME_RULE`],
];

describe('publish', () => {
  const alias = aliasOf(`t${randomBytes(4).toString('hex')}`);
  const crashed = `${alias}-20200101t000000z-0123abcd`;
  /** Indices of operators and of other registries. */
  const foreign = [`${alias}-notes`, `${alias}-20200101t000000z-0123wxyz`, `my-${crashed}`];
  let context: PublishContext;
  let client: Client;
  let logged: LogLine[] = [];

  before(async () => {
    const { url } = engines().elasticsearch;
    const pool = new SearchPool({ nodes: [url], apiKey: undefined });
    client = new Client({ node: url });
    for (const index of [crashed, ...foreign]) await client.indices.create({ index });
    context = { client, pool, exportPool: pool, alias, log: STEP.log };
  });
  after(async () => {
    const index = Object.keys(await client.indices.get({ index: `*${alias}-*` }));
    await client.indices.delete({ index });
    await Promise.all([client.close(), context.pool.close()]);
  });

  const find = () => findExisting(context, STEP.signal);
  const changesOf = (index = 'none') => changesIndexOf(alias, snapshotIdOf(index));

  /** Publishes a snapshot as a rebuild does. @returns its index. */
  async function publishGiven(given: Given = {}): Promise<string> {
    const { packages = PACKAGES, onProgress = () => undefined, intercept } = given;
    let phase = '';
    const enter = (...entered: [string, number?]) => {
      [phase] = entered;
      onProgress(...entered);
    };
    const step = { ...OPTIONS, ...given.options, progress: { enter, change: onProgress } };
    const all = { ...context, ...loggedStep() };
    ({ logged } = all);
    const respond = async (request: SentRequest, send: () => Promise<unknown>) =>
      (await intercept?.({ ...request, phase })) ?? send();
    all.client = interceptedClient(respond, engines().elasticsearch.url);
    const documents = packages.map(packageDocument);
    const last = documents.at(-1) ?? expect.fail();
    last.source = JSON.stringify({ ...(JSON.parse(last.source) as object), ...given.last });
    const meta = { ...metaWith(packages.length), ...given.meta };
    const existing = await find();
    Object.assign(existing.served ?? {}, given.served);
    try {
      await clean(all, existing, existing.served?.index, step);
      const index = await publish(all, existing, { meta, documents: streamOf([documents]) }, step);
      enter('pruning');
      await clean(all, existing, index, step);
      return index;
    } finally {
      await all.client.close();
    }
  }

  it('serves a hundred documents', async () => {
    const existing = await find();
    const documents = streamOf([PACKAGES.map(packageDocument)]);
    const { log, logged } = loggedStep();
    const index = await publish({ ...context, log }, existing, { meta: metaWith(100), documents }, OPTIONS);
    await clean(context, existing, index, OPTIONS);
    const { served, indices } = await find();
    expect(served).to.deep.include({ index, aliases: [alias] });
    expect(served?.meta).to.deep.include({ total: 100, lineage: NEW_CHAIN });
    expect(indices).to.deep.equal([index]);
    expect(logged).to.deep.equal([]);
    expect(await client.indices.exists({ index: foreign })).to.equal(true);
    const { hits } = await client.search({ index: alias, size: 100, sort: 'ordinal' });
    expect(hits.hits.map(({ _source }) => (_source as { name: string }).name)).to.deep.equal(NAMES);
  });

  it('records the changes since the snapshot that was served', async () => {
    const { index: old = '' } = (await find()).served ?? {};
    const packages = updated(1).slice(0, 98);
    Object.assign(packages[97] ?? {}, { name: 'new' });
    const index = await publishGiven({ packages });
    const { served, previous, indices } = await find();
    expect([served?.index, previous?.index]).to.deep.equal([index, old]);
    const lineage = { ancestors: [snapshotIdOf(old)], added: 1, removed: 3, updated: 1 };
    expect(served?.meta?.lineage).to.deep.equal(lineage);
    expect(indices).to.have.members([index, changesOf(index), old]);
    const { hits } = await client.search({ index: changesOf(index) });
    const changes = hits.hits.map(({ _id, _source }) => `${(_source as { change: string }).change} ${_id}`);
    const removed = [1, 2, 3].map((i) => `removed package-${i}`);
    expect(changes).to.have.members(['added new', 'updated p', ...removed]);
  });

  it('leaves indices without loading aliases that are refreshed, but cannot be written', async () => {
    const { indices } = await find();
    const found = Object.entries(await client.indices.get({ index: indices }));
    const aliases = found.flatMap((one) => Object.keys(one[1].aliases ?? {}));
    expect(aliases).to.have.members([alias, `${alias}-previous`]);
    for (const [index, { settings }] of found) {
      expect(settings?.index, index).to.deep.include({ refresh_interval: '1s', number_of_replicas: '0' });
      await rejects(client.index({ index, document: { name: 'intruder' } }), /blocked/);
    }
  });

  it('keeps two snapshots with as many changes as it is told', async () => {
    const { served: before } = await find();
    // Not more than half of all names change.
    const packages = PACKAGES.slice(0, 50);
    const index = await publishGiven({ packages, options: { retention: 1 } });
    const { served, indices } = await find();
    expect(served?.meta?.lineage?.ancestors).to.deep.equal([before?.id]);
    expect(indices).to.have.members([index, changesOf(index), before?.index, changesOf(before?.index)]);
    const last = await publishGiven({ packages, options: { retention: 0 } });
    expect((await find()).served?.meta?.lineage).to.equal(undefined);
    expect((await find()).indices).to.have.members([last, index]);
  });

  it('reports its phases with the rows and bytes of each', async () => {
    const seen: string[] = [];
    const onProgress = (...progress: unknown[]) => seen.push(JSON.stringify(progress));
    await publishGiven({ packages: PACKAGES.slice(0, 99), onProgress });
    const isOfBytes = (one: string) => /^\[\{"bytes":\d+,"total_bytes":\d+\}\]$/.test(one);
    expect(seen.some(isOfBytes)).to.equal(true);
    expect(seen.filter((one) => !isOfBytes(one)).join(' ')).to.equal(
      '["creating"] ["loading",99] [{"rows":99}] ["merging"] ["verifying"] ["comparing",99] [{"rows":99}] ["replicating"] ["flipping"] ["pruning"]',
    );
  });

  for (const [what, given, message] of FAILURES) {
    it(`keeps what is served if ${what}`, async () => {
      const before = await find();
      await rejects(publishGiven(given), { message });
      expect(await find()).to.deep.equal(before);
    });
  }

  it('keeps what is served if it is stopped before the flip', async () => {
    const before = await find();
    const stopping = new AbortController();
    const onProgress = (phase: unknown) => phase === 'flipping' && expect.fail('it continued');
    const intercept: Given['intercept'] = ({ phase, path }) => {
      if (phase !== 'replicating' || !path.endsWith('/_segments')) return undefined;
      stopping.abort();
      return { _shards: { failed: 0, successful: 1 }, indices: {} };
    };
    const stopped = publishGiven({ options: { signal: stopping.signal }, intercept, onProgress });
    await rejects(stopped, { name: 'AbortError' });
    expect(await find()).to.deep.equal(before);
  });

  it('fails if a rollback came first, which a second one reverses', async () => {
    const { served, previous } = await find();
    let rolledBack: string | undefined;
    const intercept: Given['intercept'] = async ({ phase }) => {
      if (phase === 'flipping') rolledBack ??= await rollBack(client, alias, STEP);
    };
    const message = 'another rebuild or a rollback changed what is served meanwhile';
    await rejects(publishGiven({ intercept }), { message });
    expect(rolledBack).to.equal(previous?.index);
    expect(await rollBack(client, alias, STEP)).to.equal(served?.index);
    expect((await find()).served?.index).to.equal(served?.index);
  });

  it('leaves to the next rebuild what it cannot delete', async () => {
    const { indices } = await find();
    await rejects(publishGiven(refuse(/^flipping (POST|DELETE)/, 403)), { name: 'ResponseError' });
    const msg = 'what the failed rebuild created may be left; the next one tries again';
    expect(logged.at(-1)).to.include({ msg }).and.to.have.property('index');
    expect((await find()).indices).to.have.length(indices.length + 2);
    // Keeps the two snapshots with their changes.
    await publishGiven();
    expect((await find()).indices).to.have.length(4);
  });

  for (const [what, given, lineage, ...messages] of NEW_CHAINS) {
    it(`serves a snapshot without changes if ${what}`, async () => {
      const index = await publishGiven(given);
      const { served } = await find();
      expect(served).to.have.property('index', index);
      expect(served?.meta?.lineage).to.deep.equal(lineage);
      const lines = logged.map(({ msg, reason, err }) => `${msg}: ${reason ?? err?.message ?? ''}`);
      expect(lines).to.deep.equal(messages);
    });
  }
});
