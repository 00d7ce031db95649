import type { Catalog } from '../catalog/catalog.js';
import { parseParams, searchParams } from '../http/params.js';
import { answerJson, type Handler } from './handler.js';

/** `GET /search?q=&limit=`: names that contain the query, by rank and name. */
export function search(catalog: Catalog): Handler {
  return async (ctx) => {
    const { q, limit } = parseParams(searchParams, ctx.querystring);
    const { entries, truncated } = await catalog.search(q, limit);
    if (truncated) ctx.set('X-Results-Truncated', 'true');
    answerJson(
      ctx,
      `{"query":${JSON.stringify(q)},"count":${entries.length},"results":[${entries.join(',')}]}`,
    );
  };
}
