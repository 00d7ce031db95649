import { z } from 'zod';
import type { Operation } from '../http/openapi.js';
import type { Catalog } from '../search/catalog.js';
import { etagOf, matches } from '../http/etag.js';
import type { Handler } from '../http/request-context.js';
import { SNAPSHOT_HEADERS } from './schemas.js';

export function statsOperation(slug: string): Operation {
  const total = totalOf(slug);
  return {
    summary: 'How many packages there are, of which registry, as of when',
    responses: {
      200: {
        description: 'About the snapshot that is served.',
        schema: z.strictObject({ [total]: z.int().nonnegative(), source: z.string(), note: z.string() }),
        example: {
          [total]: 63666,
          source: 'tracker.debian.org',
          note: 'The data is a snapshot that is updated periodically; this one was taken at 2026-01-02T03:04:05.678Z.',
        },
        headers: { ...SNAPSHOT_HEADERS, 'Last-Modified': 'When the snapshot was taken, for programs.' },
      },
    },
    problems: ['initializing', 'search_unavailable'],
  };
}

function totalOf(slug: string): string {
  return `total_${slug}_packages`;
}

/**
 * `GET /stats`: how many packages, of which registry, as of when. Caches revalidate it each time, so that nobody is told
 * of a snapshot that is no longer served. By `ETag` alone: after a rollback `Last-Modified` is earlier than what a client
 * may have, and `If-Modified-Since` would call that current.
 */
export function stats(catalog: Catalog, slug: string): Handler {
  return (ctx) => {
    const { index, snapshot, meta } = catalog.generation();
    const { total, source, taken_at } = meta;
    const etag = etagOf(index, 'stats');
    ctx.set({
      'Cache-Control': 'no-cache',
      ETag: etag,
      'X-Snapshot': snapshot,
      'Last-Modified': new Date(taken_at).toUTCString(),
    });
    if (matches(ctx.get('If-None-Match'), etag)) {
      ctx.status = 304;
      return;
    }
    ctx.body = {
      [totalOf(slug)]: total,
      source,
      note: `The data is a snapshot that is updated periodically; this one was taken at ${taken_at}.`,
    };
  };
}
