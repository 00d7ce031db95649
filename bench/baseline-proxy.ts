import Koa from 'koa';
import { searchTierByTier } from '../src/search/tiered-search.js';
import { msearchRequest } from '../src/search/msearch.js';
import { TierPredictor } from '../src/search/tier-predictor.js';
import { BaselineClient } from './measure.js';
import { serve } from './serve.js';

/**
 * What a hop through Koa costs a search, whatever is done there: it sends the requests that the service would send, and
 * hands on the engine's own answer, as many bytes of it as the service's would have. What it answers is no JSON.
 */
const { ELASTICSEARCH_URL = '', INDEX = '', LIMIT = '', CONNECTIONS = '' } = process.env;
const engine = new BaselineClient(ELASTICSEARCH_URL, Number(CONNECTIONS));
const odds = new TierPredictor();

/** Base64 and the hits around it, over the JSON that the service makes of it. */
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
    1,
    { q, limit: Number(LIMIT) },
    odds,
  );
  ctx.type = 'json';
  ctx.body = answer.slice(0, answer.length / ENGINE_TO_SERVICE);
});
serve(app);
