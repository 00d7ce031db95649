import { z } from 'zod';
import { respondFromCache } from '../http/cached-response.js';
import { linkHeader } from '../http/link.js';
import type { Operation } from '../http/openapi.js';
import { invalidParameter, memoizedParser } from '../http/query-params.js';
import type { Handler } from '../http/request-context.js';
import { jsonResponse } from '../http/response.js';
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

/** Default and maximum number of changes in a response. */
const DEFAULT_LIMIT = 500;
const MAX_LIMIT = 1000;

const changesParams = z.object({
  since: snapshotId.optional().meta({
    description: 'The id of a snapshot that led to the current one. Default: the previous one.',
  }),
  limit: limitParam(DEFAULT_LIMIT, MAX_LIMIT),
  snapshot: snapshotParam,
  after: z.string().optional().meta({
    description: 'The cursor in the `next` link of the previous page, for the same `since`.',
  }),
});

export const changesOperation: Operation = {
  summary: 'Changes since a snapshot',
  description:
    'Net changes, at most one for each name, in name order. Applied to the packages of `from`, they give ' +
    'those of `to`. A page may have fewer results than `limit` although more follow: check `Link`. The ' +
    'result for a removed package has its last entry. Without a `package_no` column in the dataset, `no` is a position, and ' +
    'differences in it are not changes.',
  params: changesParams,
  responses: {
    200: {
      description: 'One page of changes.',
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
        Link: 'The `next` changes, up to the same snapshot, if there are more (RFC 8288).',
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
    const after = cursor === undefined ? undefined : decodeCursor(cursorKey(since), cursor)?.name;
    if (cursor !== undefined && after === undefined) {
      throw invalidParameter('after', 'must be from a next link with the same since');
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
        const results = page.changes.map(toResult);
        return jsonResponse({ from, to, count, results }, linkHeader({ next }));
      }),
    );
  };
}

/** Binds cursors to their `since`; the prefix keeps them apart from those of a search. */
function cursorKey(since: string | undefined): string {
  return `changes ${since}`;
}

function cursorAfter(from: string, name: string): string {
  // Changes have no tiers: any one will do.
  return encodeCursor(cursorKey(from), { tier: 'startsWith', name });
}

function toResult({ change, entry: { no, name, version, url } }: Change) {
  return { change, no, name, version, url };
}
