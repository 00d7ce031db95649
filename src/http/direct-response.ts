import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type ServerResponse } from 'node:http';
import { problemBody, type Problem } from '../problem.js';
import { securityHeadersOfProblems } from './browser-policy.js';
import { REQUEST_ID } from './request-id.js';

const SECURITY_HEADERS = securityHeadersOfProblems();

/** Sends a problem past the middleware, as the last response of its connection. */
export function sendProblem(response: ServerResponse, problem: Problem, requestId: string): void {
  const { headers, body } = describe(problem, requestId);
  response.writeHead(problem.status, headers).end(body);
}

/** A whole response to what is no request, to be written to the socket: the last one of the connection. */
export function rawProblem(problem: Problem): string {
  const { headers, body } = describe(problem, randomUUID());
  const fields = Object.entries({ ...headers, Date: new Date().toUTCString() });
  return [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    ...fields.map(([name, value]) => `${name}: ${value}`),
    '',
    body,
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
