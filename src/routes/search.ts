import { z } from 'zod';
import type { Operation } from '../http/openapi.js';
import { PACKAGE_EXAMPLE, packageSchema } from './package-schemas.js';
import type { Catalog } from '../search/catalog.js';
import { writeResponseBody } from '../search/package-document.js';
import type { ResponseCache } from '../http/response-cache.js';
import { memoizedParser, searchParams } from '../http/query-params.js';
import { respondFromCache } from '../http/cached-response.js';
import type { Handler } from './handler.js';

export const searchOperation: Operation = {
  summary: 'Packages whose name contains the query',
  description:
    '`rank` is 0 where the name equals the query, 1 where it starts with it, 2 where it contains it; within a rank, ' +
    'names are in order.',
  params: searchParams,
  responses: {
    200: {
      description: 'The first of them, best rank first.',
      schema: z.strictObject({
        query: z.string(),
        count: z.int().min(0).max(500),
        results: z.array(packageSchema.extend({ rank: z.int().min(0).max(2) })).max(500),
      }),
      example: { query: 'redis-', count: 1, results: [{ ...PACKAGE_EXAMPLE, rank: 1 }] },
      headers: { 'X-Results-Truncated': '`true` where more names match.' },
    },
  },
  problems: ['invalid_parameter', 'initializing', 'search_unavailable'],
};

/** `GET /search?q=&limit=`: names that contain the query, by rank and name. */
export function search(catalog: Catalog, cache: ResponseCache): Handler {
  const parse = memoizedParser(searchParams);
  return (ctx) => {
    const { q, limit } = parse(ctx.querystring);
    return catalog.read((generation) =>
      respondFromCache(ctx, cache, generation.index, `search ${limit} ${q}`, async () => {
        const { groups, count, truncated } = await catalog.search(generation, q, limit, ctx.state.requestId);
        return {
          body: writeResponseBody(`{"query":${JSON.stringify(q)},"count":${count},"results":[`, groups),
          ...(truncated ? { headers: { 'X-Results-Truncated': 'true' } } : {}),
        };
      }),
    );
  };
}
