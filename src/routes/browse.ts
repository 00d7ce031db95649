import type { Catalog } from '../catalog/catalog.js';
import { writeAnswer } from '../catalog/entry.js';
import type { AnswerCache } from '../http/answer-cache.js';
import { browseParams, rememberingParser } from '../http/params.js';
import { respond } from '../http/respond.js';
import type { Handler } from './handler.js';

/** `GET /browse?page=&limit=`: all packages by number, page by page. */
export function browse(catalog: Catalog, cache: AnswerCache): Handler {
  const parse = rememberingParser(browseParams);
  return async (ctx) => {
    const { page, limit } = parse(ctx.querystring);
    await catalog.read((generation) =>
      respond(ctx, cache, generation.index, `browse ${limit} ${page}`, async () => {
        const entries = await catalog.browse(generation, page, limit);
        return { body: writeAnswer(`{"page":${page},"limit":${limit},"results":[`, [entries]) };
      }),
    );
  };
}
