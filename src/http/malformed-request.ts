import type { IncomingMessage } from 'node:http';
import { Problem } from './problem.js';
import { isChunked } from './pipelining.js';

/** A target with scheme and authority, as clients send it to a proxy: the authority, and the rest. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]+)(.*)$/is;

/** What a host and a port may consist of (RFC 3986, section 3.2); nothing, where there is no host. */
const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

/**
 * Finds what the parser accepts and the app does not, and reduces the request's target to its path and query.
 * @returns undefined for a good request.
 */
export function checkRequest(request: IncomingMessage): Problem | undefined {
  const { httpVersionMajor, httpVersionMinor, rawHeaders, url = '' } = request;
  if (httpVersionMajor !== 1) return malformedRequest('the version of HTTP must be 1.0 or 1.1');
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length !== 4 || name.toLowerCase() !== 'host') continue;
    hosts++;
    if (!HOST.test(rawHeaders[i + 1] ?? ''))
      return malformedRequest('the header Host must be a host and a port');
  }
  if (hosts > 1) return malformedRequest('the header Host must be given once');
  if (hosts === 0 && httpVersionMinor > 0) return malformedRequest('the header Host is required');
  const transferEncoding = request.headers['transfer-encoding'];
  if (transferEncoding !== undefined && !isChunked(transferEncoding)) {
    return malformedRequest('the last transfer coding must be chunked');
  }
  if (url.startsWith('/')) return undefined;
  const target = request.method === 'OPTIONS' && url === '*' ? url : pathOf(url);
  if (target === undefined) return malformedRequest('the address of the request is not a valid URL');
  request.url = target;
  return undefined;
}

/** What is wrong with bytes that are no request, or with a request that does not come; undefined if a connection broke. */
export function problemOfClientError({ code = '' }: NodeJS.ErrnoException): Problem | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Problem('request_timeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new Problem('headers_too_large');
  return code.startsWith('HPE_') ? malformedRequest('this is not a well-formed HTTP request') : undefined;
}

/** 417: the only expectation that HTTP defines is `100-continue`. */
export function expectationFailed(): Problem {
  return new Problem('expectation_failed');
}

/** 405: there is nothing to connect to. */
export function connectNotAllowed(): Problem {
  const detail = 'this service is no proxy; it answers GET and HEAD only';
  return new Problem('method_not_allowed', { detail });
}

function malformedRequest(detail: string): Problem {
  return new Problem('malformed_request', { detail });
}

function pathOf(url: string): string | undefined {
  const [, authority, rest = ''] = ABSOLUTE_FORM.exec(url) ?? [];
  if (authority === undefined || !URL.canParse(`http://${authority}`)) return undefined;
  return rest.startsWith('/') ? rest : `/${rest}`;
}
