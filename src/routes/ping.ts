import type { Handler } from './handler.js';

/** `GET /ping`: the process is alive, whatever else is. */
export function ping(): Handler {
  return (ctx) => {
    ctx.body = { ping: 'pong' };
  };
}
