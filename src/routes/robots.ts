import { constantResponse } from '../http/response/constant-response.js';
import type { Handler } from '../http/request/request-context.js';
import { bodyResponse } from '../http/response/response.js';

/**
 * `GET /robots.txt`: crawlers may read the page, but not the API, which has countless pages. The rules suit crawlers
 * that apply the longest matching rule (RFC 9309), and older crawlers that apply the first.
 * @param paths the paths of the API, as in OpenAPI.
 */
export function robots(paths: readonly string[]): Handler {
  const prefixes = paths.map((path) => path.replace(/\{.*/, ''));
  // In reverse order, a path comes before its prefixes.
  const rules = prefixes
    .sort()
    .reverse()
    .map((prefix) => `Disallow: ${prefix}`);
  const text = ['User-agent: *', ...rules, 'Allow: /', ''].join('\n');
  const headers = { 'Content-Type': 'text/plain; charset=utf-8' };
  return constantResponse(bodyResponse(Buffer.from(text), headers), 'public, max-age=3600');
}
