import type { ServerResponse } from 'node:http';
import { policyFields } from './browser-policy.js';
import type { Problem } from '../problems/problem.js';
import { REQUEST_ID } from '../request/request-context.js';
import { fieldsOf, jsonResponse, NO_STORE, type BodyResponse } from './response.js';

/** The response that reports a problem. */
export function problemResponse({ status, headers, body }: Problem): BodyResponse {
  const type = { 'Content-Type': 'application/problem+json' };
  return jsonResponse(body, { ...NO_STORE, ...type, ...headers }, status);
}

/** Sends a problem in place of a failed response, and closes the connection. */
export function sendProblem(response: ServerResponse, problem: Problem, requestId: string): void {
  const [path = ''] = (response.req.url ?? '').split(/[?#]/, 1);
  const { headers, body } = problemResponse(problem);
  const own = [REQUEST_ID, requestId, 'Connection', 'close'];
  const fields = [...policyFields(path, problem.status), ...fieldsOf(headers), ...own];
  response.writeHead(problem.status, fields).end(body);
}
