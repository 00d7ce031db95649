import { rejects } from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from '@elastic/elasticsearch';
import { expect } from 'chai';
import { PHASES } from '../../src/rebuild/progress.js';
import { RebuildStates } from '../../src/rebuild/state.js';
import { rebuildsIndexOf } from '../../src/snapshot/index-names.js';
import { EngineProxy, type Matches } from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { removeRegistries } from '../support/registries.js';
import { newSlug } from '../support/service.js';

const EXPIRY_MS = 600;

const isRecord: Matches = (_method, path) => path.includes('/_update/a');

describe('The state of rebuilds', function () {
  this.timeout(20_000);
  const slugs: string[] = [];
  let client: Client;
  let slug: string;
  let states: RebuildStates;
  before(() => (client = new Client({ node: engines().elasticsearch.url })));
  beforeEach(() => {
    slug = newSlug();
    slugs.push(slug);
    states = new RebuildStates(client, slug, { expiry: EXPIRY_MS, report: 100 });
  });
  after(async () => {
    await removeRegistries(slugs);
    await client.close();
  });

  /** The document as Kibana and operators see it. */
  const document = async () =>
    (await client.get<object>({ index: rebuildsIndexOf(slug), id: 'state' }))._source;

  it('is empty before the first rebuild', async () => {
    expect(await states.read()).to.deep.equal({});
    expect(await states.history(10)).to.deep.equal([]);
  });

  it('lets one of many take the lock at the same time', async () => {
    const owners = Array.from({ length: 20 }, (_, i) => `owner ${i}`);
    const taken = await Promise.all(owners.map((owner) => states.acquire(owner)));
    const winners = new Set(taken.map((state) => state.owner));
    expect(winners).to.have.property('size', 1);
    expect(owners).to.include([...winners][0]);
  });

  it('has the names that operators read', async () => {
    await states.acquire('a');
    await states.report('a', { phase: 'loading', rows: 5, total_rows: 9, bytes: null, total_bytes: null });
    await states.report('a', { memory_bytes: 1e8, cpu_seconds: 1.5 });
    const { started_at = 0, expires_at = 0, last_check_at, ...others } = await states.read();
    expect(await document()).to.deep.equal({ started_at, expires_at, last_check_at, ...others });
    const progress = { phase: 'loading', rows: 5, total_rows: 9, bytes: null, total_bytes: null };
    expect(others).to.deep.equal({ owner: 'a', ...progress, memory_bytes: 1e8, cpu_seconds: 1.5 });
    expect(last_check_at).to.equal(started_at);
    expect(expires_at - started_at).to.be.within(EXPIRY_MS, EXPIRY_MS + 5000);
  });

  it('gives the lock again to the owner that lost the response', async () => {
    const first = await states.acquire('a');
    expect(await states.acquire('a')).to.include({ owner: 'a', last_check_at: first.last_check_at });
  });

  it('keeps the lock of an owner that reports', async () => {
    await states.acquire('a');
    for (let i = 0; i < 5; i++) {
      await pause(EXPIRY_MS / 2);
      expect(await states.report('a')).to.include({ owner: 'a' });
      expect(await states.acquire('b')).to.include({ owner: 'a' });
    }
  });

  it('keeps an expired lock that nobody else has taken', async () => {
    await states.acquire('a');
    await pause(EXPIRY_MS * 1.5);
    expect(await states.report('a')).to.include({ owner: 'a' });
    expect(await states.acquire('b')).to.include({ owner: 'a' });
  });

  it('has the failure of an owner whose lock expired', async () => {
    await states.acquire('a');
    await states.report('a', { phase: 'merging', memory_bytes: 1 });
    await pause(EXPIRY_MS * 1.5);
    const { started_at: at, ...state } = await states.acquire('b');
    const reason = 'the rebuild process ended unexpectedly while merging';
    expect(state).to.deep.include({
      owner: 'b',
      phase: 'downloading',
      rows: 0,
      last_failure: { at, reason },
    });
    expect(state).not.to.have.property('memory_bytes');
    expect(await states.ended('a')).to.include({ outcome: 'failed', reason });
  });

  it('lets an expired lock be taken although the end of its owner cannot be recorded', async () => {
    const proxy = await EngineProxy.start(engines().elasticsearch.url);
    const proxied = new Client({ node: proxy.url, maxRetries: 0 });
    await states.acquire('a');
    await pause(EXPIRY_MS * 1.5);
    proxy.impersonate((_request, response) => response.writeHead(429).end(), isRecord);
    expect(await new RebuildStates(proxied, slug).acquire('b')).to.include({ owner: 'b' });
    expect(await states.ended('a')).to.equal(undefined);
    await proxied.close();
    await proxy.close();
  });

  it('is not changed by an owner that has lost the lock', async () => {
    await states.acquire('a');
    await pause(EXPIRY_MS * 1.5);
    const taken = await states.acquire('b');
    expect(await states.report('a', { rows: 7 })).to.equal(undefined);
    await states.release('a', { outcome: 'failed', reason: 'late' });
    expect(await states.read()).to.deep.equal(taken);
    expect(await states.ended('a')).to.include({ reason: 'late' });
  });

  it('has the last success and no failure after it', async () => {
    for (const [outcome, reason] of [['failed', 'why'], ['unchanged'], ['stopped']] as const) {
      await states.acquire(outcome);
      await states.release(outcome, { outcome, ...(reason && { reason }) });
      const { last_failure, last_success_at, owner } = await states.read();
      expect(owner).to.equal(undefined);
      expect(last_failure?.reason, outcome).to.equal(reason);
      expect(last_success_at === undefined, outcome).to.equal(outcome === 'failed');
    }
  });

  it('starts a refresh only if the last rebuild began long enough ago', async () => {
    const isStarted = async (owner: string, minAgeMs: number) =>
      (await states.acquire(owner, { minAgeMs })).owner === owner;
    expect(await isStarted('first', 1000)).to.equal(true);
    await states.release('first', { outcome: 'unchanged' });
    expect(await isStarted('early', 60_000)).to.equal(false);
    // Elasticsearch's clock advances in steps of 0.2 seconds.
    await pause(600);
    expect(await isStarted('later', 250)).to.equal(true);
  });

  it('does not count a rollback as a rebuild', async () => {
    await states.acquire('a', { phase: 'flipping' });
    await states.release('a');
    expect(await states.read()).to.deep.equal({});
    expect(await states.history(10)).to.deep.equal([]);
  });

  it('keeps the last two hundred rebuilds', async () => {
    const index = rebuildsIndexOf(slug);
    const { started_at } = await states.acquire('a');
    const old = Array.from({ length: 210 }, (_, i) => [
      { index: { _id: `old ${i}` } },
      { ended_at: i + 1, outcome: 'failed' },
    ]);
    await client.bulk({ index, operations: old.flat(), refresh: true });
    const seconds = Object.fromEntries(PHASES.map((phase) => [phase, 0.5]));
    const ended = { outcome: 'rebuilt', snapshot: 'x', packages: 9, seconds } as const;
    await states.release('a', ended);
    await client.indices.refresh({ index });
    const [newest, ...others] = await states.history(1000);
    expect(newest).to.deep.include({ ...ended, started_at });
    expect(others).to.have.length(199);
    expect(others.at(-1)).to.include({ ended_at: 12 });
  });

  it('is never created with other fields', async () => {
    await states.acquire('a');
    const { [rebuildsIndexOf(slug)]: created } = await client.indices.get({ index: rebuildsIndexOf(slug) });
    expect(created?.mappings?.dynamic).to.equal('strict');
    expect(created?.settings?.index?.auto_expand_replicas).to.equal('0-1');
  });

  it('is unavailable with the reason in one line', async () => {
    const broken = new RebuildStates(new Client({ node: 'http://127.0.0.1:1', maxRetries: 0 }), slug);
    await rejects(broken.acquire('a'), {
      name: 'StateUnavailableError',
      message: /^Elasticsearch does not respond: connect ECONNREFUSED [^\n]+$/,
    });
  });
});
