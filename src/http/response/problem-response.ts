import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { policyFields } from './browser-policy.js';
import type { Problem } from '../problems/problem.js';
import { REQUEST_ID, requestIdOf } from '../request/request-context.js';
import { fieldsOf, jsonResponse, NO_STORE, type BodyResponse } from './response.js';

/** The response that reports a problem. */
export function problemResponse({ status, headers, body }: Problem): BodyResponse {
  const type = { 'Content-Type': 'application/problem+json' };
  return jsonResponse(body, { ...NO_STORE, ...type, ...headers }, status);
}

/** Sends a problem in place of a failed response, and closes the connection. */
export function sendProblem(response: ServerResponse, problem: Problem, requestId: string): void {
  const { fields, body } = lastResponse(problem, requestId, response.req.url);
  response.writeHead(problem.status, [...fields]).end(body);
}

/**
 * A problem as the text of an HTTP response, for a request that does not reach the app. Its headers announce that the
 * connection closes.
 * @param request the rejected request, if one was parsed.
 */
export function rawProblem(problem: Problem, request?: IncomingMessage): string {
  const requestId = request === undefined ? randomUUID() : requestIdOf(request);
  const { fields, body } = lastResponse(problem, requestId, request?.url);
  const lines = ['Date', new Date().toUTCString(), ...fields].map(
    (text, i) => text + (i % 2 ? '\r\n' : ': '),
  );
  return (
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n` +
    (request?.method === 'HEAD' ? '' : body.toString())
  );
}

/** The response to the last request of a connection, with all of its headers. */
function lastResponse(problem: Problem, requestId: string, target = '') {
  const [path = ''] = target.split(/[?#]/, 1);
  const { headers, body } = problemResponse(problem);
  const own = [REQUEST_ID, requestId, 'Connection', 'close'];
  return { fields: [...policyFields(path, problem.status), ...fieldsOf(headers), ...own], body };
}
