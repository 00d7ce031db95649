import Koa from 'koa';
import { serve } from './serve.js';

/** What Koa itself costs: one middleware that answers the bytes it is given on standard input, as JSON. */
const chunks: Buffer[] = [];
for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
const body = Buffer.concat(chunks);

const app = new Koa();
app.use((ctx) => {
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = body;
});
serve(app);
