import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The header that brings a request's id, from a proxy that gave it one, and takes it back to the client. */
export const REQUEST_ID = 'X-Request-Id';

/** What can stand in a log line and in a header of another request without harm. */
const WELL_FORMED = /^[\w.:-]{1,64}$/;

/** The id that came with a request, where it is well-formed; otherwise a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && WELL_FORMED.test(given) ? given : randomUUID();
}
