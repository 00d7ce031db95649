import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { problemBody, type Problem } from '../problem.js';
import { securityHeadersOfProblems } from './browser-policy.js';
import { REQUEST_ID, requestIdOf } from './request-id.js';

const SECURITY_HEADERS = securityHeadersOfProblems();

/** Sends a problem in place of a response that has failed, as the last one of its connection. */
export function sendProblem(response: ServerResponse, problem: Problem, requestId: string): void {
  const { headers, body } = describe(problem, requestId);
  response.writeHead(problem.status, headers).end(body);
}

/**
 * A problem as it is written to the socket, as the last response of its connection: for what the app cannot answer.
 * @param request what it is about, if that is a request.
 */
export function rawProblem(problem: Problem, request?: IncomingMessage): string {
  const { headers, body } = describe(problem, request === undefined ? randomUUID() : requestIdOf(request));
  const fields = Object.entries({ ...headers, Date: new Date().toUTCString() });
  return [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    ...fields.map(([name, value]) => `${name}: ${value}`),
    '',
    request?.method === 'HEAD' ? '' : body,
  ].join('\r\n');
}

function describe({ status, code, detail, headers }: Problem, requestId: string) {
  const body = JSON.stringify(problemBody(status, code, detail));
  return {
    headers: {
      ...SECURITY_HEADERS,
      ...headers,
      [REQUEST_ID]: requestId,
      'Cache-Control': 'no-store',
      'Content-Type': 'application/problem+json',
      'Content-Length': String(Buffer.byteLength(body)),
      Connection: 'close',
    },
    body,
  };
}
