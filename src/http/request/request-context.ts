import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { ParameterizedContext } from 'koa';
import type { BypassTokens } from '../auth/bypass-token.js';
import type { Problem } from '../problems/problem.js';
import type { ClientAddress, ReadClientAddress } from './client-address.js';
import type { HttpResponse } from '../response/response.js';

export type Context = ParameterizedContext<RequestState>;

export type Handler = (ctx: Context) => HttpResponse | Promise<HttpResponse>;

/** The header of the request id: accepted from the client or a proxy, and returned in the response. */
export const REQUEST_ID = 'X-Request-Id';

/** Characters that are safe in log lines and headers. */
const WELL_FORMED_ID = /^[\w.:-]{1,64}$/;

/** The id sent with a request if the id is well-formed, otherwise a new id. */
function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && WELL_FORMED_ID.test(given) ? given : randomUUID();
}

export interface RequestServices {
  readAddress: ReadClientAddress;
  tokens: BypassTokens;
}

/** The state of one request. The address and the token are read on use: pages and health checks need neither. */
export class RequestState {
  /** Identifies the request in logs, in Elasticsearch and in the response. */
  readonly requestId: string;
  /** Additional headers of the response: names and values in turn. They must differ from the response's own headers. */
  readonly headerFields: string[];
  /** The path of the endpoint, as in OpenAPI, or of the page's file; undefined if the path is unknown. */
  route: string | undefined;
  /** Whether the response is part of the web page, which has other security headers. */
  isPage = false;
  /** Responds to an error; undefined for `application/problem+json`. */
  errorResponse: ((problem: Problem) => HttpResponse) | undefined;

  constructor(
    private readonly request: IncomingMessage,
    private readonly services: RequestServices,
    /** The response, which is sent once all middleware has run. */
    public response: HttpResponse,
  ) {
    this.requestId = requestIdOf(request);
    this.headerFields = [REQUEST_ID, this.requestId];
  }

  get address(): ClientAddress {
    return this.services.readAddress(this.request);
  }

  /** Seconds for which the request's bypass token skips the limits; 0 without a valid token. */
  get bypassSecondsLeft(): number {
    const token = this.request.headers['x-bypass-token'];
    return token === undefined ? 0 : this.services.tokens.secondsLeft(token.toString());
  }
}
