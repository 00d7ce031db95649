import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import { memoized, parseParams } from '../http/request/query-params.js';
import { bodyResponse, linkHeader } from '../http/response/response.js';
import type { SnapshotRead } from '../read/snapshot-read.js';
import type { Catalog } from '../search/catalog.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { writeResponseBody } from '../snapshot/package-document.js';
import {
  limitParam,
  MAX_LIMIT,
  PACKAGE_EXAMPLE,
  packageSchema,
  positiveInteger,
  READ_PROBLEMS,
  snapshotParam,
} from './schemas.js';

export const browseParams = z.object({
  page: positiveInteger
    .transform(Number)
    .refine(Number.isSafeInteger, 'is too large to be an exact integer')
    .default(1)
    .meta({
      type: 'integer',
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The page number, from 1. A page past the end is empty.',
    }),
  limit: limitParam(200),
  snapshot: snapshotParam,
});

export const browseOperation: Operation = {
  id: 'browsePackages',
  tag: 'Snapshot',
  summary: 'All packages by number, page by page',
  description:
    'Every page, the last one included, costs the same time. Follow the `Link` headers to stay in one snapshot.',
  params: browseParams,
  response: {
    description: 'One page of packages.',
    schema: component('BrowsePage', {
      page: z.int().min(1),
      limit: z.int().min(1).max(MAX_LIMIT),
      results: z.array(packageSchema).max(MAX_LIMIT),
    }),
    example: { page: 1, limit: 200, results: [PACKAGE_EXAMPLE] },
    headers: ['X-Snapshot', 'Link'],
  },
  problems: READ_PROBLEMS,
};

/** `GET /browse?page=&limit=`: all packages by number, page by page. */
export function browse(catalog: Catalog): SnapshotRead<z.output<typeof browseParams>> {
  return {
    parse: memoized((querystring) => parseParams(browseParams, querystring)),
    key: ({ page, limit }) => `browse ${limit} ${page}`,
    async search({ page, limit }, snapshot, requestId) {
      const entries = await catalog.browse(snapshot, page, limit, requestId);
      const body = writeResponseBody(`{"page":${page},"limit":${limit},"results":[`, [entries]);
      return bodyResponse(body, pageLinks(page, limit, snapshot));
    },
  };
}

/** Links to the other pages. A page past the end has no `next`, and its `prev` is the last page. */
function pageLinks(page: number, limit: number, { id, meta }: Snapshot): Record<string, string> {
  const last = Math.max(1, Math.ceil(meta.total / limit));
  const to = (target: number) => ({ page: target, limit, snapshot: id });
  return linkHeader({
    first: to(1),
    prev: page > 1 ? to(Math.min(page - 1, last)) : undefined,
    next: page < last ? to(page + 1) : undefined,
    last: to(last),
  });
}
