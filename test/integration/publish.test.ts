import { rejects } from 'node:assert/strict';
import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { SearchPool } from '../../src/elasticsearch/search-pool.js';
import { clean, findExisting, publish, type PublishContext } from '../../src/publish/publish.js';
import { rollBack } from '../../src/publish/rollback.js';
import { aliasOf, changesIndexOf, snapshotIdOf } from '../../src/snapshot/index-names.js';
import { packageDocument, type PackageEntry } from '../../src/snapshot/package-document.js';
import type { SnapshotMeta } from '../../src/snapshot/snapshot-meta.js';
import { streamOf } from '../support/batches.js';
import { packagesNamed } from '../support/datasets.js';
import { engines } from '../support/engines.js';
import { errorResponse, interceptedClient, type SentRequest } from '../support/intercepted-client.js';
import { newSlug } from '../support/service.js';
import { metaWith } from '../support/snapshot-meta.js';
import { loggedStep, STEP } from '../support/step.js';

const NAMES = Array.from({ length: 100 }, (_, i) => `package-${i}`);
const OPTIONS = { signal: STEP.signal, replicas: '0', retention: 2 };
const NEW_CHAIN = { ancestors: [], added: 0, removed: 0, updated: 0 };

type Intercept = (request: SentRequest & { phase: string }) => unknown;

/** How a publication differs from that of a hundred packages. */
interface Given {
  packages?: PackageEntry[];
  meta?: Partial<SnapshotMeta>;
  /** Changes the last document. */
  edit?: (document: Record<string, unknown>) => object;
  options?: Partial<typeof OPTIONS>;
  onProgress?: (...progress: unknown[]) => void;
  /** Called before each request. */
  intercept?: Intercept;
}

/** Refuses requests of a phase: `<phase> <method> <path>`. */
const refuse =
  (requests: RegExp, status: number, type?: string): Intercept =>
  ({ method, path, phase }) => {
    if (requests.test(`${phase} ${method} ${path}`))
      throw errorResponse(status, type, status === 403 ? 'action [write] is unauthorized' : '');
  };

const forgetMeta: Intercept = ({ method, body }) => {
  if (method === 'PUT') delete (body as { mappings?: { _meta?: object } } | undefined)?.mappings?._meta;
};
const deleteFirst: Intercept = async ({ phase, path }) => {
  if (phase !== 'loading') return;
  const client = new Client({ node: engines().elasticsearch.url });
  await client.indices
    .delete({ index: path.split('-loading')[0]?.slice(1) ?? '' })
    .finally(() => client.close());
};
const sameIds = packagesNamed(NAMES).map((entry) => ({ ...entry, no: Math.min(entry.no, 99) }));

// prettier-ignore
const FAILURES: [what: string, Given, message: string | RegExp][] = [
  ['its documents are too few', { meta: { total: 101 } }, '100 of 101 documents were loaded'],
  ['documents have the same id', { packages: sameIds }, /has 99 documents instead of 100$/],
  ['an ordinal is missing', { edit: (last) => ({ ...last, ordinal: 101 }) }, 'the new index has no package with the ordinal 99'],
  ['a name is not found', { edit: (last) => ({ ...last, name: 'x' }) }, 'the new index does not find the package "package-99"'],
  ['a document is invalid', { edit: (last) => ({ ...last, ordinal: 'x' }) }, 'Elasticsearch rejected a document: document_parsing_exception'],
  ['its index was deleted', { intercept: deleteFirst }, 'Elasticsearch rejected a document: index_not_found_exception'],
  ['its metadata is invalid', { meta: { total: -1 } }, /^the _meta of the index would be invalid: total: /],
  ['its metadata was not stored', { intercept: forgetMeta }, /^the _meta of .*z-.* cannot be read$/],
];

const changed = (count: number) =>
  packagesNamed(NAMES).map((entry, i) => ({ ...entry, version: i < count ? '2' : '1.0.0' }));
const NOT_RECORDED = 'the changes were not recorded: the snapshot starts a new chain';

// prettier-ignore
const NEW_CHAINS: [what: string, Given, lineage: object | undefined, ...messages: string[]][] = [
  ['Elasticsearch rejects its request', { intercept: refuse(/^comparing PUT .*_block/, 400) }, NEW_CHAIN, `${NOT_RECORDED}: an_exception`],
  ['the key lacks a privilege', { intercept: refuse(/^comparing PUT .*_block/, 403, 'security_exception') }, undefined,
    'ELASTICSEARCH_REBUILD_API_KEY does not allow write: /changes is unavailable; make keys with npm run keys: security_exception'],
  ['the chain cannot be recorded', { intercept: refuse(/^comparing (PUT .*_mapping|DELETE)/, 400) }, undefined, `${NOT_RECORDED}: an_exception`,
    'a new chain could not be recorded: /changes is unavailable: an_exception',
    'the index of changes could not be removed; the next rebuild tries again: an_exception'],
  ['more than half of all names changed', { packages: changed(51) }, NEW_CHAIN, `${NOT_RECORDED}: more than half of all names changed`],
  ['the previous snapshot has another rule', { meta: { name_rule: 'pypi' } }, NEW_CHAIN, `${NOT_RECORDED}: the previous snapshot has another NAME_RULE`],
];

describe('publish', () => {
  const alias = aliasOf(newSlug());
  let context: PublishContext;
  let client: Client;
  let logged: Record<string, unknown>[] = [];

  before(() => {
    const { url } = engines().elasticsearch;
    const pool = new SearchPool({ nodes: [url], apiKey: undefined });
    client = new Client({ node: url });
    context = { client, pool, exportPool: pool, alias, log: STEP.log };
  });
  after(async () => {
    const index = Object.keys(await client.indices.get({ index: `${alias}-*`, expand_wildcards: 'all' }));
    await client.indices.delete({ index });
    await Promise.all([client.close(), context.pool.close()]);
  });

  const find = () => findExisting(context, STEP.signal);
  const servedIndex = async () => (await find()).served?.index ?? 'none';
  const changesOf = (index: string) => changesIndexOf(alias, snapshotIdOf(index));

  /** Publishes a snapshot as a rebuild does. @returns its index. */
  async function publishGiven(given: Given = {}): Promise<string> {
    const {
      packages = packagesNamed(NAMES),
      edit = (last) => last,
      onProgress = () => undefined,
      intercept,
    } = given;
    let phase = '';
    const enter = (...entered: [string, number?]) => {
      [phase] = entered;
      onProgress(...entered);
    };
    const step = { ...OPTIONS, ...given.options, progress: { enter, change: onProgress } };
    const all = { ...context, ...loggedStep() };
    ({ logged } = all);
    all.client = interceptedClient(async (request, send) => {
      await intercept?.({ ...request, phase });
      return send();
    }, engines().elasticsearch.url);
    const documents = packages.map(packageDocument);
    const last = documents.at(-1) ?? expect.fail();
    last.source = JSON.stringify(edit(JSON.parse(last.source) as Record<string, unknown>));
    const snapshot = {
      meta: { ...metaWith(packages.length), ...given.meta },
      documents: streamOf([documents]),
    };
    const existing = await find();
    try {
      const index = await publish(all, existing, snapshot, step);
      enter('pruning');
      await clean(all, existing, index, step);
      return index;
    } finally {
      await all.client.close();
    }
  }

  it('serves a hundred documents', async () => {
    const index = await publishGiven();
    const { served, indices } = await find();
    expect(served).to.deep.include({ index, aliases: [alias] });
    expect(served?.meta).to.deep.include({ total: 100, lineage: NEW_CHAIN });
    expect(indices).to.deep.equal([index]);
    const { hits } = await client.search({ index: alias, size: 100, sort: 'ordinal' });
    expect(hits.hits.map(({ _source }) => (_source as { name: string }).name)).to.deep.equal(NAMES);
  });

  it('records the changes since the snapshot that was served', async () => {
    const old = await servedIndex();
    const packages = changed(1).slice(0, 98);
    Object.assign(packages[97] ?? {}, { name: 'new' });
    const index = await publishGiven({ packages });
    const { served, previous, indices } = await find();
    expect([served?.index, previous?.index]).to.deep.equal([index, old]);
    expect(served?.meta?.lineage).to.deep.equal({
      ancestors: [snapshotIdOf(old)],
      added: 1,
      removed: 3,
      updated: 1,
    });
    expect(indices).to.have.members([index, changesOf(index), old]);
    const { hits } = await client.search({ index: changesOf(index) });
    const changes = hits.hits.map(({ _id, _source }) => `${(_source as { change: string }).change} ${_id}`);
    const removed = NAMES.slice(97).map((name) => `removed ${name}`);
    expect(changes).to.have.members(['added new', 'updated package-0', ...removed]);
  });

  it('leaves indices that are read-only and refreshed, without loading aliases', async () => {
    const index = await servedIndex();
    const found = await client.indices.get({ index: [index, changesOf(index)] });
    expect(Object.values(found).flatMap(({ aliases = {} }) => Object.keys(aliases))).to.deep.equal([alias]);
    for (const { settings } of Object.values(found)) {
      expect(settings?.index).to.deep.include({ number_of_replicas: '0', refresh_interval: '1s' });
      expect(settings?.index?.blocks?.write).to.equal('true');
    }
  });

  it('keeps two snapshots with as many changes as it is told', async () => {
    const before = await servedIndex();
    const packages = packagesNamed(NAMES.slice(0, 90));
    const index = await publishGiven({ packages, options: { retention: 1 } });
    expect((await find()).served?.meta?.lineage?.ancestors).to.deep.equal([snapshotIdOf(before)]);
    expect((await find()).indices).to.have.members([index, changesOf(index), before, changesOf(before)]);
    const last = await publishGiven({ packages, options: { retention: 0 } });
    expect((await find()).served?.meta?.lineage).to.equal(undefined);
    expect((await find()).indices).to.have.members([last, index]);
  });

  it('reports its phases with the rows and bytes of each', async () => {
    const seen: string[] = [];
    const onProgress = (...progress: unknown[]) => seen.push(JSON.stringify(progress).slice(1, -1));
    await publishGiven({ packages: packagesNamed(NAMES.slice(0, 99)), onProgress });
    const [loaded, compared] = ['"loading",99', '"comparing",99'];
    const rows = '{"rows":99}';
    const bytes = seen.filter((one) => one.includes('total_bytes'));
    // prettier-ignore
    expect(seen.filter((one) => !bytes.includes(one))).to.deep.equal(
      ['"creating"', loaded, rows, '"merging"', '"verifying"', compared, rows, '"replicating"', '"flipping"', '"pruning"']);
    expect(bytes[0]).to.match(/^\{"bytes":\d+,"total_bytes":\d+\}$/);
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
    const intercept: Intercept = ({ phase, path }) => {
      if (phase === 'replicating' && path.endsWith('/_segments')) setImmediate(() => stopping.abort());
    };
    await rejects(publishGiven({ options: { signal: stopping.signal }, intercept }));
    expect(await find()).to.deep.equal(before);
  });

  it('fails if a rollback came first, which a second one reverses', async () => {
    const { served, previous } = await find();
    let rolledBack: string | undefined;
    const published = publishGiven({
      intercept: async ({ phase }) => {
        if (phase === 'flipping') rolledBack ??= await rollBack(client, alias, STEP);
      },
    });
    await rejects(published, { message: 'another rebuild or a rollback changed what is served meanwhile' });
    expect(rolledBack).to.equal(previous?.index);
    expect(await rollBack(client, alias, STEP)).to.equal(served?.index);
    expect(await servedIndex()).to.equal(served?.index);
  });

  for (const [what, given, lineage, ...messages] of NEW_CHAINS) {
    it(`serves a snapshot without changes if ${what}`, async () => {
      const index = await publishGiven(given);
      const { served } = await find();
      expect(served).to.have.property('index', index);
      expect(served?.meta?.lineage).to.deep.equal(lineage);
      const lines = logged.map(({ msg, reason, err }) => `${msg}: ${reason ?? (err as Error).message}`);
      expect(lines).to.deep.equal(messages);
    });
  }
});
