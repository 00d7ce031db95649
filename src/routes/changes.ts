import { z } from 'zod';
import { respondFromCache } from '../http/cached-response.js';
import { linkHeader } from '../http/link.js';
import type { Operation } from '../http/openapi.js';
import { invalidParameter, memoizedParser } from '../http/query-params.js';
import type { Handler } from '../http/request-context.js';
import type { ResponseCache } from '../http/response-cache.js';
import type { Catalog } from '../search/catalog.js';
import { CHANGES, type Change } from '../search/change-record.js';
import { decodeCursor, encodeCursor } from '../search/cursor.js';
import {
  limitParam,
  PACKAGE_EXAMPLE,
  packageSchema,
  READ_PROBLEMS,
  SNAPSHOT_HEADERS,
  snapshotId,
  snapshotParam,
} from './schemas.js';

/** Changes in a response. */
const DEFAULT_LIMIT = 500;
const MAX_LIMIT = 1000;

const changesParams = z.object({
  since: snapshotId.optional().meta({
    description:
      'The snapshot that the client has, by its id: one of those that led to the current one. By default the one before.',
  }),
  limit: limitParam(DEFAULT_LIMIT, MAX_LIMIT),
  snapshot: snapshotParam,
  after: z.string().optional().meta({
    description: 'Where the page before ended: from the `next` of its header `Link`, for the same `since`.',
  }),
});

export const changesOperation: Operation = {
  summary: 'What changed since a snapshot',
  description:
    'Net changes, at most one for each name, in name order. Applied to the names of `from`, they give those of `to`. ' +
    'A page may have fewer than `limit` although others follow: `Link` tells. A removed package has its last entry. ' +
    'Without a column `package_no` in the dataset, numbers are positions: they do not count as changed.',
  params: changesParams,
  responses: {
    200: {
      description: 'The first of them.',
      schema: z.strictObject({
        from: snapshotId,
        to: snapshotId,
        count: z.int().min(0).max(MAX_LIMIT),
        results: z.array(z.strictObject({ change: z.enum(CHANGES), ...packageSchema.shape })).max(MAX_LIMIT),
      }),
      example: {
        from: '20260101t030405z-0123abcd',
        to: '20260102t030405z-4567cdef',
        count: 1,
        results: [{ change: 'added', ...PACKAGE_EXAMPLE }],
      },
      headers: {
        ...SNAPSHOT_HEADERS,
        Link: 'The `next` changes, up to the same snapshot, where there are more (RFC 8288).',
      },
    },
  },
  problems: READ_PROBLEMS,
};

/** `GET /changes?since=&limit=`: net changes from a snapshot to the current one. */
export function changes(catalog: Catalog, cache: ResponseCache): Handler {
  const parse = memoizedParser(changesParams);
  return (ctx) => {
    const { since, limit, snapshot, after: cursor } = parse(ctx.querystring);
    // Without `since` it goes by the snapshot: a cursor says what it was.
    const after = cursor === undefined ? undefined : decodeCursor(`changes ${since}`, cursor)?.name;
    if (cursor !== undefined && after === undefined) {
      throw invalidParameter('after', 'must be that of a link to the next changes since the same snapshot');
    }
    return catalog.readSince(snapshot, since, (generation, chain) =>
      respondFromCache(ctx, cache, generation, `changes ${chain.from} ${limit} ${cursor ?? ''}`, async () => {
        const { from } = chain;
        const to = generation.snapshot;
        const page = await catalog.changes(generation, chain, { limit, after }, ctx.state.requestId);
        const count = page.changes.length;
        const next =
          page.next === undefined
            ? undefined
            : { since: from, limit, snapshot: to, after: cursorAfter(from, page.next) };
        return {
          body: Buffer.from(JSON.stringify({ from, to, count, results: page.changes.map(toResult) })),
          headers: linkHeader({ next }),
        };
      }),
    );
  };
}

function cursorAfter(from: string, name: string): string {
  return encodeCursor(`changes ${from}`, { tier: 'startsWith', name });
}

function toResult({ change, entry: { no, name, version, url } }: Change) {
  return { change, no, name, version, url };
}
