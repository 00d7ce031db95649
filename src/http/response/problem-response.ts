import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { policyHeaders } from './browser-policy.js';
import type { Problem } from './problem.js';
import { REQUEST_ID, requestIdOf } from '../request/request-context.js';
import { jsonResponse, NO_STORE, type BodyResponse, type ResponseHeaders } from './response.js';

/** The response that reports a problem. */
export function problemResponse({ status, headers, body }: Problem): BodyResponse {
  const type = { 'Content-Type': 'application/problem+json' };
  return jsonResponse(body, { ...NO_STORE, ...type, ...headers }, status);
}

/** Sends a problem in place of a failed response, and closes the connection. */
export function sendProblem(response: ServerResponse, problem: Problem, requestId: string): void {
  const { headers, body } = lastResponse(problem, requestId, response.req.url);
  response.writeHead(problem.status, headers).end(body);
}

/**
 * A problem in wire format that closes the connection, for input that does not reach the app.
 * @param request the rejected request, if one was parsed.
 */
export function rawProblem(problem: Problem, request?: IncomingMessage): string {
  const requestId = request === undefined ? randomUUID() : requestIdOf(request);
  const { headers, body } = lastResponse(problem, requestId, request?.url);
  const fields = Object.entries({ Date: new Date().toUTCString(), ...headers });
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return (
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${head}\r\n` +
    (request?.method === 'HEAD' ? '' : body.toString())
  );
}

/** The response to the last request of a connection, with all of its headers. */
function lastResponse(problem: Problem, requestId: string, target = '') {
  const [path = ''] = target.split(/[?#]/, 1);
  const { headers, body } = problemResponse(problem);
  const own: ResponseHeaders = { [REQUEST_ID]: requestId, Connection: 'close' };
  return { headers: { ...policyHeaders(path, problem.status), ...headers, ...own }, body };
}
