import type { Catalog } from '../catalog/catalog.js';
import { browseParams, parseParams } from '../http/params.js';
import { answerJson, type Handler } from './handler.js';

/** `GET /browse?page=&limit=`: all packages by number, page by page. */
export function browse(catalog: Catalog): Handler {
  return async (ctx) => {
    const { page, limit } = parseParams(browseParams, ctx.querystring);
    const entries = await catalog.browse(page, limit);
    answerJson(ctx, `{"page":${page},"limit":${limit},"results":[${entries.join(',')}]}`);
  };
}
