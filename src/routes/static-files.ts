import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { matches } from '../http/etag.js';
import { encodingFor } from '../http/cached-response.js';
import { compress, type Encoding } from '../http/compression.js';
import type { Handler } from '../http/request-context.js';

/** The build's output folder for the web page: the compiled scripts of src/web, and its other files. */
const FOLDER = new URL('../../dist/web/', import.meta.url);

/** Content types of served files. Others, such as those of the compiler, are not served. */
const TYPES: Partial<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Files with a special path; the others are below `/page/`. */
const ADDRESSES: Partial<Record<string, string>> = { 'index.html': '/', 'docs.html': '/docs' };

/** The page's link to the feed of changes. */
const FEED_LINK = /\s*<link rel="alternate"[^>]*>/;

/** A file of the web page, kept in memory in all encodings that were requested. */
interface StaticFile {
  type: string;
  etag: string;
  body: (encoding: Encoding | undefined) => Promise<Buffer>;
}

/**
 * Reads the files of the web page, with their paths.
 * @param hasFeed whether there is a feed of changes.
 * @throws {Error} if the page has not been built.
 */
export function staticFiles(hasFeed: boolean): [path: string, file: StaticFile][] {
  return readdirSync(FOLDER).flatMap((name) => {
    const type = TYPES[extname(name)];
    if (type === undefined) return [];
    const text = readFileSync(new URL(name, FOLDER), 'utf8');
    const identity = Buffer.from(hasFeed ? text : text.replace(FEED_LINK, ''));
    const encoded: Partial<Record<Encoding, Promise<Buffer>>> = {};
    const file = {
      type,
      etag: `W/"${hash('sha1', identity, 'base64url')}"`,
      body: (encoding: Encoding | undefined) =>
        encoding ? (encoded[encoding] ??= compress(identity, encoding, 'best')) : Promise.resolve(identity),
    };
    return [[ADDRESSES[name] ?? `/page/${name}`, file]];
  });
}

/** Serves a file of the web page. Browsers revalidate it each time, so that they never mix two versions. */
export function serveStaticFile({ type, etag, body }: StaticFile): Handler {
  return async (ctx) => {
    ctx.set({ 'Cache-Control': 'no-cache', ETag: etag, Vary: 'Accept-Encoding' });
    if (matches(ctx.get('If-None-Match'), etag)) {
      ctx.status = 304;
      return;
    }
    const encoding = encodingFor(ctx);
    if (encoding !== undefined) ctx.set('Content-Encoding', encoding);
    ctx.type = type;
    ctx.body = await body(encoding);
  };
}
