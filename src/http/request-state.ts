import type { Middleware, ParameterizedContext } from 'koa';
import type { BypassTokens } from './bypass-token.js';
import type { ClientAddress, ReadClientAddress } from './client-address.js';

/** What every handler may know of its request. */
export interface RequestState {
  client: ClientAddress;
  /** Seconds for which the request's bypass token skips the limits; 0 without a valid one. */
  bypassSecondsLeft: number;
}

export type Context = ParameterizedContext<RequestState>;

/** Finds out who asks, and with what right. */
export function identify(readAddress: ReadClientAddress, tokens: BypassTokens): Middleware<RequestState> {
  return (ctx, next) => {
    const token = ctx.get('X-Bypass-Token');
    ctx.state.client = readAddress(ctx.req);
    ctx.state.bypassSecondsLeft = token === '' ? 0 : tokens.secondsLeft(token);
    return next();
  };
}
