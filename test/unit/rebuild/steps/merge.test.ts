import { rejects } from 'node:assert/strict';
import { createRebuildClient } from '../../../../src/elasticsearch/elasticsearch.js';
import { assertOneSegment } from '../../../../src/rebuild/steps/merge.js';
import { withNodes } from '../../../support/node-servers.js';
import { STEP } from '../../../support/step.js';

const COPY = { routing: { node: 'n' }, segments: { _0: { search: true } } };

describe('assertOneSegment', () => {
  for (const [what, { failed = 0, successful = 1 }, shards, name] of [
    ['a shard failed', { failed: 1 }, { 0: [COPY] }, 'ElasticsearchUnavailableError'],
    ['no shard responded', { successful: 0 }, {}, 'ElasticsearchUnavailableError'],
    ['a shard has no node', {}, { 0: [COPY] }, 'ElasticsearchUnavailableError'],
    ['nothing is searchable', { successful: 2 }, { 0: [], 1: [] }, 'Error'],
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
          const checked = assertOneSegment(client, 'packages', 2, { ...STEP, stallMs: 50, pauseMs: 10 });
          await rejects(checked, { name }).finally(() => client.close());
        },
      ));
  }
});
