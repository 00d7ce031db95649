import Koa from 'koa';
import { serve } from './serve.js';

/** Baseline of Koa itself: one middleware that responds with the bytes from standard input, as JSON. */
const chunks: Buffer[] = [];
for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
const body = Buffer.concat(chunks);

const app = new Koa();
app.use((ctx) => {
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = body;
});
serve(app);
