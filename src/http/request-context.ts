import type { IncomingMessage } from 'node:http';
import type { Middleware, ParameterizedContext } from 'koa';
import type { BypassTokens } from './bypass-token.js';
import type { ClientIp, ReadClientIp } from './client-ip.js';
import type { PreparedResponse } from './prepared-response.js';
import { REQUEST_ID, requestIdOf } from './request-id.js';

/** The state of one request. */
export interface RequestState {
  client: Client;
  /** Identifies the request in logs, in Elasticsearch and in the response. */
  requestId: string;
  /** Response headers that do not depend on the body: alternating names and values. */
  rawHeaders: string[];
  /** A response that is sent without Koa's status and body. */
  prepared?: PreparedResponse;
  /** Whether the response is part of the web page, which has other security headers. */
  isPage?: true;
}

export type Context = ParameterizedContext<RequestState>;

/** Handles a request: parses it, calls the domain, and sets the response. */
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

/** Initialises the state of each request. */
export function requestContext(readAddress: ReadClientIp, tokens: BypassTokens): Middleware<RequestState> {
  return (ctx, next) => {
    const requestId = requestIdOf(ctx.req);
    ctx.state.client = new Client(ctx.req, readAddress, tokens);
    ctx.state.requestId = requestId;
    ctx.state.rawHeaders = [REQUEST_ID, requestId];
    return next();
  };
}
