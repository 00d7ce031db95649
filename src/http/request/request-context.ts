import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Middleware, ParameterizedContext } from 'koa';
import type { BypassTokens } from './bypass-token.js';
import type { ClientIp, ReadClientIp } from './client-ip.js';
import type { HttpResponse } from '../response/response.js';

/** The state of one request. */
export interface RequestState {
  client: Client;
  /** Identifies the request in logs, in Elasticsearch and in the response. */
  requestId: string;
  /** Headers of the response that do not depend on its body. */
  headers: Record<string, string>;
  /** Aborts when the server stops: responses then close their connections. */
  stopping: AbortSignal;
  /** Whether the response is part of the web page, which has other security headers. */
  isPage?: true;
}

export type Context = ParameterizedContext<RequestState>;

/** Handles a request: parses it, calls the domain, and returns the response. */
export type Handler = (ctx: Context) => HttpResponse | Promise<HttpResponse>;

/** The header of the request id: accepted from the client or a proxy, and returned in the response. */
export const REQUEST_ID = 'X-Request-Id';

/** Characters that are safe in log lines and headers. */
const WELL_FORMED_ID = /^[\w.:-]{1,64}$/;

/** The id sent with a request if it is well-formed, otherwise a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && WELL_FORMED_ID.test(given) ? given : randomUUID();
}

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

/** Initialises the state of each request. @param stopping aborts when the server stops. */
export function requestContext(
  readAddress: ReadClientIp,
  tokens: BypassTokens,
  stopping: AbortSignal,
): Middleware<RequestState> {
  return (ctx, next) => {
    const requestId = requestIdOf(ctx.req);
    ctx.state.client = new Client(ctx.req, readAddress, tokens);
    ctx.state.requestId = requestId;
    ctx.state.headers = { [REQUEST_ID]: requestId };
    ctx.state.stopping = stopping;
    return next();
  };
}
