import type { Context } from '../http/request-state.js';

/** Answers a request: parse, call, answer. Errors are thrown as `Problem`. */
export type Handler = (ctx: Context) => void | Promise<void>;

/** Answers with a JSON text that is ready. */
export function answerJson(ctx: Context, json: string): void {
  ctx.body = json;
  ctx.type = 'application/json';
}
