import type { IncomingMessage } from 'node:http';
import type { Middleware, ParameterizedContext } from 'koa';
import type { BypassTokens } from './bypass-token.js';
import type { ClientIp, ReadClientIp } from './client-ip.js';
import type { PreparedResponse } from './prepared-response.js';
import { REQUEST_ID, requestIdOf } from './request-id.js';

/** What every handler may know of its request. */
export interface RequestState {
  client: Client;
  /** Names the request in logs, in Elasticsearch and in the answer. */
  requestId: string;
  /** Headers of the response that do not depend on its body: names and values in turn. */
  rawHeaders: string[];
  /** The response, if it is not one that Koa has to make of a status and a body. */
  prepared?: PreparedResponse;
  /** Whether the answer is a part of the page that people see: browsers may do more with it than with data. */
  isPage?: true;
}

export type Context = ParameterizedContext<RequestState>;

/** Responds to a request: parse, call, answer. */
export type Handler = (ctx: Context) => void | Promise<void>;

/** The client of a request and its bypass token, evaluated on first use: most requests need neither. */
export class Client {
  #address: ClientIp | undefined;
  #bypassSecondsLeft: number | undefined;

  constructor(
    private readonly request: IncomingMessage,
    private readonly readAddress: ReadClientIp,
    private readonly tokens: BypassTokens,
  ) {}

  get address(): ClientIp {
    return (this.#address ??= this.readAddress(this.request));
  }

  /** Seconds for which the request's bypass token skips the limits; 0 without a valid one. */
  get bypassSecondsLeft(): number {
    return (this.#bypassSecondsLeft ??= this.tokens.secondsLeft(this.#token()));
  }

  #token(): string | undefined {
    const token = this.request.headers['x-bypass-token'];
    return Array.isArray(token) ? token[0] : token;
  }
}

/** Gives each request its client and its id. */
export function requestContext(readAddress: ReadClientIp, tokens: BypassTokens): Middleware<RequestState> {
  return (ctx, next) => {
    const requestId = requestIdOf(ctx.req);
    ctx.state.client = new Client(ctx.req, readAddress, tokens);
    ctx.state.requestId = requestId;
    ctx.state.rawHeaders = [REQUEST_ID, requestId];
    return next();
  };
}
