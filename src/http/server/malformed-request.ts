import type { IncomingMessage } from 'node:http';
import { Problem } from '../problems/problem.js';

/** A target in absolute form, as sent to a proxy. Captures the authority and the rest. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]+)(.*)$/is;

/** The characters of a host and a port (RFC 3986, section 3.2), both optional. */
const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

/**
 * Finds faults of a request that Node's parser has accepted. Reduces an absolute URL in `request.url` to path and
 * query.
 * @returns undefined for a valid request.
 */
export function checkRequest(request: IncomingMessage): Problem | undefined {
  const { httpVersionMajor, httpVersionMinor, headers, rawHeaders, url = '' } = request;
  if (httpVersionMajor !== 1) return malformedRequest('the HTTP version must be 1.0 or 1.1');
  const { host, 'transfer-encoding': coding } = headers;
  if (host === undefined && httpVersionMinor > 0) return malformedRequest('the Host header is required');
  if (host !== undefined && !HOST.test(host))
    return malformedRequest('the Host header must be a host and a port');
  // `headers` has only the first Host header.
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  if (hosts > 1) return malformedRequest('the Host header must be given once');
  // If the last transfer coding is not chunked, the length of the body is unknown (RFC 9112, section 6.3).
  if (coding !== undefined && !/\bchunked[ \t]*$/i.test(coding))
    return malformedRequest('the last transfer coding must be chunked');
  if (url.startsWith('/')) return undefined;
  const target = request.method === 'OPTIONS' && url === '*' ? url : pathOf(url);
  if (target === undefined) return malformedRequest('the request target is not a valid URL');
  request.url = target;
  return undefined;
}

/** The problem of malformed or late input; undefined if the connection failed. */
export function problemOfClientError({ code = '' }: NodeJS.ErrnoException): Problem | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Problem('request_timeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new Problem('headers_too_large');
  if (code === 'HPE_INVALID_URL' || code === 'HPE_INVALID_CONSTANT') {
    return malformedRequest(
      'the request line must be a method, a percent-encoded target and the HTTP version, such as GET /search?q=caf%C3%A9 HTTP/1.1',
    );
  }
  return code.startsWith('HPE_') ? malformedRequest('this is not a well-formed HTTP request') : undefined;
}

/** 405 for `CONNECT`. */
export function connectNotAllowed(): Problem {
  const detail = 'this service is not a proxy; it supports GET and HEAD only';
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
