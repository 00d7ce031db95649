import { z } from 'zod';
import { respondFromCache } from '../http/cached-response.js';
import type { Operation } from '../http/openapi.js';
import { memoizedParser } from '../http/query-params.js';
import type { Handler } from '../http/request-context.js';
import type { ResponseCache } from '../http/response-cache.js';
import type { Catalog } from '../search/catalog.js';
import { writeResponseBody } from '../search/package-document.js';
import { codePoints, trimWhiteSpace } from '../unicode.js';
import { limitParam, MAX_LIMIT, PACKAGE_EXAMPLE, packageSchema } from './schemas.js';

/** Length of a trimmed query, in code points. */
const MIN_LENGTH = 2;
const MAX_LENGTH = 100;

/** `\p{White_Space}` in a form that every dialect of regular expressions knows. */
const SPACE = '\\u0009-\\u000D\\u0020\\u0085\\u00A0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000';
/** For the OpenAPI document: a query that has the right length once it is trimmed. */
const QUERY_PATTERN = `^[${SPACE}]*[^${SPACE}][\\s\\S]{${MIN_LENGTH - 2},${MAX_LENGTH - 2}}[^${SPACE}][${SPACE}]*$`;

export const searchParams = z.object({
  q: z
    .string('is required')
    .overwrite(trimWhiteSpace)
    .refine((text) => {
      const { length } = codePoints(text);
      return length >= MIN_LENGTH && length <= MAX_LENGTH;
    }, `must have ${MIN_LENGTH} to ${MAX_LENGTH} characters`)
    .meta({
      minLength: MIN_LENGTH,
      pattern: QUERY_PATTERN,
      description: `A part of the name, of ${MIN_LENGTH} to ${MAX_LENGTH} characters without the white space around it; case is ignored.`,
      examples: ['redis'],
    }),
  limit: limitParam(250),
});

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
        count: z.int().min(0).max(MAX_LIMIT),
        results: z.array(packageSchema.extend({ rank: z.int().min(0).max(2) })).max(MAX_LIMIT),
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
