import { text } from 'node:stream/consumers';
import Koa from 'koa';
import { serve } from './serve.js';

/** Baseline of Koa itself: one middleware that responds with the text from standard input, as JSON. */
const body = await text(process.stdin);

const app = new Koa();
app.use((ctx) => {
  ctx.type = 'json';
  ctx.body = body;
});
serve(app);
