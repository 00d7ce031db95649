import type { IncomingMessage } from 'node:http';
import { Problem } from '../problems/problem.js';

/** A target in absolute form, as sent to a proxy. Captures the authority and the rest. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]+)(.*)$/is;

/** The characters of a host and a port (RFC 3986, section 3.2), both optional. */
const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

/**
 * Rejects requests that the parser accepts and the app does not. Reduces the request's target to path and
 * query.
 * @returns undefined for a valid request.
 */
export function checkRequest(request: IncomingMessage): Problem | undefined {
  const { httpVersionMajor, httpVersionMinor, rawHeaders, url = '' } = request;
  if (httpVersionMajor !== 1) return malformedRequest('the HTTP version must be 1.0 or 1.1');
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length !== 4 || name.toLowerCase() !== 'host') continue;
    hosts++;
    if (!HOST.test(rawHeaders[i + 1] ?? ''))
      return malformedRequest('the Host header must be a host and a port');
  }
  if (hosts > 1) return malformedRequest('the Host header must be given once');
  if (hosts === 0 && httpVersionMinor > 0) return malformedRequest('the Host header is required');
  const transferEncoding = request.headers['transfer-encoding'];
  if (transferEncoding !== undefined && !isChunked(transferEncoding)) {
    return malformedRequest('the last transfer coding must be chunked');
  }
  if (url.startsWith('/')) return undefined;
  const target = request.method === 'OPTIONS' && url === '*' ? url : pathOf(url);
  if (target === undefined) return malformedRequest('the request target is not a valid URL');
  request.url = target;
  return undefined;
}

/** Whether a body is chunked. With any other transfer coding, a body has no end (RFC 9112, section 6.3). */
function isChunked(transferEncoding = ''): boolean {
  return /\bchunked[ \t]*$/i.test(transferEncoding);
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

/** 417: the only expectation that HTTP defines is `100-continue`. */
export function expectationFailed(): Problem {
  return new Problem('expectation_failed');
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
