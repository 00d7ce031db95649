import type { IncomingMessage } from 'node:http';
import { Problem } from '../problem.js';

/** A target with scheme and authority, as clients send it to a proxy: the authority, and the rest. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]+)(.*)$/is;

/**
 * Finds what the parser accepts and the app does not, and reduces the request's target to its path and query.
 * @returns undefined for a good request.
 */
export function checkRequest(request: IncomingMessage): Problem | undefined {
  const { url = '' } = request;
  if (url.startsWith('/')) return undefined;
  const target = request.method === 'OPTIONS' && url === '*' ? url : pathOf(url);
  if (target === undefined) return malformedRequest('the address of the request is not a valid URL');
  request.url = target;
  return undefined;
}

/** 400: what is wrong with the request as a whole. */
function malformedRequest(detail: string): Problem {
  return new Problem(400, 'malformed_request', detail);
}

function pathOf(url: string): string | undefined {
  const [, authority, rest = ''] = ABSOLUTE_FORM.exec(url) ?? [];
  if (authority === undefined || !URL.canParse(`http://${authority}`)) return undefined;
  return rest.startsWith('/') ? rest : `/${rest}`;
}
