import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The header of the request id: accepted from the client or a proxy, and returned in the response. */
export const REQUEST_ID = 'X-Request-Id';

/** Characters that are safe in log lines and headers. */
const WELL_FORMED = /^[\w.:-]{1,64}$/;

/** The id sent with a request if it is well-formed, otherwise a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && WELL_FORMED.test(given) ? given : randomUUID();
}
