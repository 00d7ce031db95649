import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { constantResponse } from '../http/response/constant-response.js';
import type { Handler } from '../http/request/request-context.js';
import { bodyResponse } from '../http/response/response.js';
import { PROJECT_FOLDER } from '../util/project-folder.js';

/** The build's output folder for the web page: bundled scripts, and the HTML, CSS and SVG files of src/web. */
const FOLDER = new URL('dist/web/', PROJECT_FOLDER);

/** Content types of served files. Other files, such as the license of a library, are not served. */
const TYPES: Partial<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Files with a special path; the others are below `/page/`. */
const ADDRESSES: Partial<Record<string, string>> = { 'index.html': '/', 'docs.html': '/docs' };

const FEED_LINK = /\s*<link rel="alternate"[^>]*>/;

/**
 * The paths and handlers of the page's files. Browsers revalidate the files each time, so they never mix two versions.
 * @param searchEngine title of the link to `/opensearch.xml`, which must equal its `ShortName`.
 * @throws {Error} if the page has not been built.
 */
export function staticFiles(hasFeed: boolean, searchEngine: string): [path: string, handler: Handler][] {
  return readdirSync(FOLDER).flatMap((name) => {
    const type = TYPES[extname(name)];
    if (type === undefined) return [];
    const text = readFileSync(new URL(name, FOLDER), 'utf8').replace('SEARCH_ENGINE', searchEngine);
    const body = Buffer.from(hasFeed ? text : text.replace(FEED_LINK, ''));
    const handler = constantResponse(bodyResponse(body, { 'Content-Type': type }), 'no-cache');
    return [[ADDRESSES[name] ?? `/page/${name}`, handler]];
  });
}

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
