import { z } from 'zod';
import type { Operation } from '../http/openapi.js';
import { PACKAGE_EXAMPLE, packageSchema } from './package-schemas.js';
import type { Catalog } from '../search/catalog.js';
import { writeResponseBody } from '../search/package-document.js';
import type { ResponseCache } from '../http/response-cache.js';
import { browseParams, memoizedParser } from '../http/query-params.js';
import { respondFromCache } from '../http/cached-response.js';
import type { Handler } from './handler.js';

export const browseOperation: Operation = {
  summary: 'All packages by number, page by page',
  params: browseParams,
  responses: {
    200: {
      description: 'A page.',
      schema: z.strictObject({
        page: z.int().min(1),
        limit: z.int().min(1).max(500),
        results: z.array(packageSchema).max(500),
      }),
      example: { page: 1, limit: 200, results: [PACKAGE_EXAMPLE] },
    },
  },
  problems: ['invalid_parameter', 'initializing', 'search_unavailable'],
};

/** `GET /browse?page=&limit=`: all packages by number, page by page. */
export function browse(catalog: Catalog, cache: ResponseCache): Handler {
  const parse = memoizedParser(browseParams);
  return (ctx) => {
    const { page, limit } = parse(ctx.querystring);
    return catalog.read((generation) =>
      respondFromCache(ctx, cache, generation.index, `browse ${limit} ${page}`, async () => {
        const entries = await catalog.browse(generation, page, limit, ctx.state.requestId);
        return { body: writeResponseBody(`{"page":${page},"limit":${limit},"results":[`, [entries]) };
      }),
    );
  };
}
