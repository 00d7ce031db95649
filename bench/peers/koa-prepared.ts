import { text } from 'node:stream/consumers';
import Koa from 'koa';
import { serve } from '../serve.js';

/** The floor: a bare Koa that responds with the bodies from standard input, JSON by path. */
const bodies = JSON.parse(await text(process.stdin)) as Record<string, string>;

const app = new Koa();
app.use((ctx) => {
  ctx.type = 'json';
  ctx.body = bodies[ctx.url];
});
serve(app);
