import type { Context } from '../http/request-context.js';

/** Answers a request: parse, call, answer. Errors are thrown as `Problem`. */
export type Handler = (ctx: Context) => void | Promise<void>;
