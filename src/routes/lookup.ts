import { z } from 'zod';
import { respondFromCache } from '../http/cached-response.js';
import type { Operation } from '../http/openapi.js';
import { parseParams } from '../http/query-params.js';
import type { RateLimit } from '../http/rate-limit/middleware.js';
import type { Handler } from '../http/request-context.js';
import { jsonResponse } from '../http/response.js';
import type { ResponseCache } from '../http/response-cache.js';
import type { Catalog } from '../search/catalog.js';
import {
  exactName,
  PACKAGE_EXAMPLE,
  packageSchema,
  READ_PROBLEMS,
  SNAPSHOT_HEADERS,
  snapshotParam,
} from './schemas.js';

/** Maximum number of names in one request. */
const MAX_NAMES = 100;

/** Names that cost one point of the rate limit. */
const NAMES_PER_POINT = 10;

const lookupParams = z.object({
  name: z
    .array(exactName)
    .min(1, 'is required')
    .max(MAX_NAMES, `must be given at most ${MAX_NAMES} times`)
    .meta({
      description: `An exact name. Repeat it for up to ${MAX_NAMES} names that fit into the request.`,
      examples: ['redis-redisearch'],
    }),
  snapshot: snapshotParam,
});

export const lookupOperation: Operation = {
  summary: 'Packages with the given names',
  description: `Costs one point of the rate limit for every ${NAMES_PER_POINT} names.`,
  params: lookupParams,
  responses: {
    200: {
      description:
        'One result for each name, in request order. `package` is `null` if no package has the name.',
      schema: z.strictObject({
        count: z.int().min(0).max(MAX_NAMES),
        results: z
          .array(z.strictObject({ name: z.string(), package: packageSchema.nullable() }))
          .min(1)
          .max(MAX_NAMES),
      }),
      example: {
        count: 1,
        results: [
          { name: PACKAGE_EXAMPLE.name, package: PACKAGE_EXAMPLE },
          { name: 'redis-redisserch', package: null },
        ],
      },
      headers: SNAPSHOT_HEADERS,
    },
  },
  problems: [...READ_PROBLEMS, 'headers_too_large'],
};

/** `GET /lookup?name=&name=`: the packages with these names, compared code point by code point. */
export function lookup(catalog: Catalog, cache: ResponseCache, limit: RateLimit): Handler {
  return async (ctx) => {
    const { name: names, snapshot } = parseParams(lookupParams, ctx.querystring);
    await limit.raiseTo(Math.ceil(names.length / NAMES_PER_POINT), ctx.state);
    return catalog.read(snapshot, (generation) =>
      respondFromCache(ctx, cache, generation, `lookup ${JSON.stringify(names)}`, async () => {
        const found = await catalog.lookup(generation, names, ctx.state.requestId);
        const results = names.map((name) => ({ name, package: found.get(name) ?? null }));
        const count = results.filter((result) => result.package !== null).length;
        return jsonResponse({ count, results });
      }),
    );
  };
}
