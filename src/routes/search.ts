import type { Catalog } from '../catalog/catalog.js';
import { writeAnswer } from '../catalog/entry.js';
import type { AnswerCache } from '../http/answer-cache.js';
import { rememberingParser, searchParams } from '../http/params.js';
import { respond } from '../http/respond.js';
import type { Handler } from './handler.js';

/** `GET /search?q=&limit=`: names that contain the query, by rank and name. */
export function search(catalog: Catalog, cache: AnswerCache): Handler {
  const parse = rememberingParser(searchParams);
  return async (ctx) => {
    const { q, limit } = parse(ctx.querystring);
    await catalog.read((generation) =>
      respond(ctx, cache, generation.index, `search ${limit} ${q}`, async () => {
        const { groups, count, truncated } = await catalog.search(generation, q, limit);
        return {
          body: writeAnswer(`{"query":${JSON.stringify(q)},"count":${count},"results":[`, groups),
          ...(truncated ? { headers: { 'X-Results-Truncated': 'true' } } : {}),
        };
      }),
    );
  };
}
