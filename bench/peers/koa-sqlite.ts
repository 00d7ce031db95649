import { text } from 'node:stream/consumers';
import Koa from 'koa';
import { serve } from '../serve.js';
import { openSqlite } from './sqlite.js';

/**
 * `/search` by SQLite behind a bare Koa, without checks, limits, cache, tags, pages and snapshots. The path of the database
 * comes from standard input.
 */
const search = openSqlite(await text(process.stdin));

const app = new Koa();
app.use((ctx) => {
  const params = new URLSearchParams(ctx.querystring);
  ctx.type = 'json';
  ctx.body = search(params.get('q') as string, Number(params.get('limit')));
});
serve(app);
