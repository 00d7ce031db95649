import Koa from 'koa';
import { searchTierByTier } from '../src/search/tiered-search.js';
import { msearchRequest } from '../src/elasticsearch/msearch.js';
import { estimateOf } from './load.js';
import { BaselineClient } from './measure.js';
import { serve } from './serve.js';

/**
 * Baseline of a proxy through Koa: sends the requests that the service would send, and responds with the
 * start of Elasticsearch's response: about as many bytes as the service would send, but not valid JSON.
 */
const { ELASTICSEARCH_URL = '', INDEX = '', LIMIT = '', CONNECTIONS = '' } = process.env;
const engine = new BaselineClient(ELASTICSEARCH_URL, Number(CONNECTIONS));
const isLikelyFull = await estimateOf(ELASTICSEARCH_URL, INDEX);

/** Size of Elasticsearch's response, with Base64 and hits, ÷ size of the service's JSON. */
const ENGINE_TO_SERVICE = 1.5;

const app = new Koa();
app.use(async (ctx) => {
  const q = new URLSearchParams(ctx.querystring).get('q') ?? '';
  let answer = '';
  await searchTierByTier(
    async (bodies) => {
      const { path, body } = msearchRequest(INDEX, bodies);
      answer = await engine.post(path, body);
      return answer
        .split('"timed_out"')
        .slice(1)
        .map((hits) => ({ entries: hits.split('"entry"').slice(1), exact: 0 }));
    },
    { q, limit: Number(LIMIT) },
    isLikelyFull(q, Number(LIMIT)),
  );
  ctx.type = 'json';
  ctx.body = answer.slice(0, answer.length / ENGINE_TO_SERVICE);
});
serve(app);
