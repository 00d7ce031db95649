import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { CORS_HEADERS, isOpen } from './cors.js';
import type { Problem } from './problem.js';
import { SECURITY_HEADERS } from './security-headers.js';
import { REQUEST_ID, requestIdOf } from './request-id.js';

/** Sends a problem in place of a failed response, and closes the connection. */
export function sendProblem(response: ServerResponse, problem: Problem, requestId: string): void {
  const { rawHeaders, body } = describe(problem, requestId, response.req.url);
  response.writeHead(problem.status, rawHeaders).end(body);
}

/**
 * A problem in wire format that closes the connection, for input that does not reach the app.
 * @param request the rejected request, if one was parsed.
 */
export function rawProblem(problem: Problem, request?: IncomingMessage): string {
  const requestId = request === undefined ? randomUUID() : requestIdOf(request);
  const { rawHeaders, body } = describe(problem, requestId, request?.url);
  let head = `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\nDate: ${new Date().toUTCString()}\r\n`;
  for (let i = 0; i < rawHeaders.length; i += 2) head += `${rawHeaders[i]}: ${rawHeaders[i + 1]}\r\n`;
  return `${head}\r\n${request?.method === 'HEAD' ? '' : body}`;
}

function describe({ headers, ...problem }: Problem, requestId: string, target = '') {
  const [path = ''] = target.split(/[?#]/, 1);
  const body = JSON.stringify(problem.body);
  const own = {
    ...headers,
    [REQUEST_ID]: requestId,
    'Cache-Control': 'no-store',
    'Content-Type': 'application/problem+json',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  };
  const rawHeaders = [
    ...SECURITY_HEADERS,
    ...(isOpen(path) ? CORS_HEADERS : []),
    ...Object.entries(own).flat(),
  ];
  return { rawHeaders, body };
}
