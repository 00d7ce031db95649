import { rejects } from 'node:assert/strict';
import { createRebuildClient } from '../../../src/elasticsearch/elasticsearch.js';
import { assertOneSegment } from '../../../src/publish/merge.js';
import { withNodes } from '../../support/node-servers.js';
import { STEP } from '../../support/step.js';

const copyOf = (...search: boolean[]) => ({
  segments: Object.fromEntries(search.map((search, i) => [`_${i}`, { search }])),
});

describe('assertOneSegment', () => {
  for (const [what, { failed = 0, successful = 1 }, shards, name] of [
    ['a copy failed', { failed: 1 }, { 0: [copyOf(true)] }, 'ElasticsearchUnavailableError'],
    ['no copy responded', { successful: 0 }, {}, 'ElasticsearchUnavailableError'],
    ['a copy has nothing searchable', { successful: 2 }, { 0: [copyOf(true), copyOf(false)] }, 'Error'],
    ['a copy has two segments', { successful: 2 }, { 0: [copyOf(true), copyOf(true, true)] }, 'Error'],
  ] as [string, { failed?: number; successful?: number }, object, string][]) {
    it(`fails if ${what}: the order of results depends on it`, () =>
      withNodes(
        [
          (_request, response) => {
            const body = { _shards: { total: 2, failed, successful }, indices: { packages: { shards } } };
            response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body));
          },
        ],
        async (nodes) => {
          const client = createRebuildClient({ nodes, apiKey: undefined });
          const checked = assertOneSegment(client, 'packages', { ...STEP, stallMs: 50, pauseMs: 10 });
          await rejects(checked, { name }).finally(() => client.close());
        },
      ));
  }
});
