import { rejects } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { createRebuildClient } from '../../../src/elasticsearch/elasticsearch.js';
import type { SnapshotMeta } from '../../../src/snapshot/snapshot-meta.js';
import { createLogger } from '../../../src/util/log.js';
import { NAME_RULES, type NameRule } from '../../../src/util/name-rule.js';
import { createIndex } from '../../../src/publish/create.js';
import { replicate } from '../../../src/publish/replicate.js';
import type { RetryOptions } from '../../../src/publish/retry.js';
import { withNodes } from '../../support/node-servers.js';
import { metaWith } from '../../support/snapshot-meta.js';
import { STEP } from '../../support/step.js';

const JSON_TYPE = { 'Content-Type': 'application/json' };

describe('createIndex', () => {
  const index = 'registry-packages-20260101t000000z-00000000';
  const fileOf = (content: string) =>
    readFileSync(new URL(`../../../mappings/${content}.json`, import.meta.url), 'utf8');

  /** The request for an index. */
  async function requestFor(
    content: 'packages' | 'changes',
    created: { meta?: SnapshotMeta; nameRule?: NameRule },
  ) {
    let body = '';
    const node: RequestListener = (request, response) => {
      const end = () => response.writeHead(200, JSON_TYPE).end('{}');
      void text(request).then((sent) => ((body ||= sent), end()));
    };
    await withNodes([node], async (nodes) => {
      const client = createRebuildClient({ nodes, apiKey: undefined });
      await createIndex(client, content, { index, ...created }, STEP).finally(() => client.close());
    });
    return JSON.parse(body) as object;
  }

  for (const content of ['packages', 'changes'] as const)
    it(`sends the file of ${content} with the analyzers of the name rule`, async () => {
      for (const rule of NAME_RULES) {
        const plain = /(?<="(?:normalizer|analyzer)": ")(?!fold)\w+/g;
        const own = fileOf(content).replace(plain, ['pypi', 'crates'].includes(rule) ? `$&_${rule}` : '$&');
        const expected = { ...(JSON.parse(own) as object), aliases: { [`${index}-loading`]: {} } };
        expect(await requestFor(content, { nameRule: rule }), rule).to.deep.equal(expected);
      }
    });

  it('adds the metadata of a snapshot, whose name rule it follows', async () => {
    const meta = { ...metaWith(3), name_rule: 'crates' as const };
    const { mappings, ...others } = (await requestFor('packages', { nameRule: 'crates' })) as {
      mappings: object;
    };
    expect(await requestFor('packages', { meta })).to.deep.equal({
      ...others,
      mappings: { ...mappings, _meta: meta },
    });
  });

  /** Creates an index on a server that responds with `settings` to later requests. */
  function create(onCreate: () => Promise<unknown>, settings: object, step: RetryOptions): Promise<void> {
    const node: RequestListener = ({ method }, response) => {
      const end = (body: object) => response.writeHead(200, JSON_TYPE).end(JSON.stringify(body));
      if (method === 'GET') end({ [index]: { settings } });
      else void onCreate().then(() => end({ acknowledged: true }));
    };
    return withNodes([node], async (nodes) => {
      const client = createRebuildClient({ nodes, apiKey: undefined });
      await createIndex(client, 'changes', { index }, step).finally(() => client.close());
    });
  }

  // The Elasticsearch of the tests has no such policies.
  it('warns of a lifecycle policy from an index template', async () => {
    let logged = '';
    const log = createLogger('warn', { destination: { write: (line) => (logged += line) } });
    const settings = { index: { lifecycle: { name: 'thirty-days' } } };
    await create(() => Promise.resolve(), settings, { ...STEP, log });
    expect(JSON.parse(logged)).to.include({ index, policy: 'thirty-days' });
  });

  it('ends after the response to its request when it is stopped: the index can then be deleted', async () => {
    const stopping = new AbortController();
    let isCreated = false;
    const creation = async () => {
      stopping.abort();
      await pause(100);
      isCreated = true;
    };
    await rejects(create(creation, {}, { ...STEP, signal: stopping.signal }));
    expect(isCreated).to.equal(true);
  });
});

describe('replicate', () => {
  /** Waits for a copy of an index. `bytesAt(n)` are copied at poll n; undefined if the copy exists. */
  function wait(bytesAt: (poll: number) => number | undefined, stallMs: number): Promise<void> {
    let polls = 0;
    const node: RequestListener = ({ url = '' }, response) => {
      const bytes = bytesAt(polls);
      const size = { recovered_in_bytes: bytes, total_in_bytes: 1000 };
      const missing = bytes === undefined ? { indices: {} } : { indices: { packages: { shards: {} } } };
      if (url.includes('_recovery')) polls++;
      const body = url.includes('_recovery')
        ? { packages: { shards: [{ type: 'PEER', index: { size } }] } }
        : missing;
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body));
    };
    return withNodes([node], async (nodes) => {
      const client = createRebuildClient({ nodes, apiKey: undefined });
      const options = { ...STEP, stallMs, onBytes: () => undefined };
      await replicate(client, 'packages', '1', options).finally(() => client.close());
    });
  }

  it('lets a copy begin anew, also several times', async () => {
    await wait((poll) => (poll < 6 ? (poll % 2) * 10 + poll : undefined), 10_000);
  });

  it('fails if a copy makes no progress, whatever it repeats', async () => {
    await rejects(
      wait((poll) => poll % 3, 400),
      /^Error: copying the index \(INDEX_REPLICAS=1\) made no progress for 0\.4 seconds$/,
    );
  });
});
