import type { Catalog } from '../catalog/catalog.js';
import type { Handler } from './handler.js';

/** `GET /stats`: how many packages, of which registry, as of when. */
export function stats(catalog: Catalog, slug: string): Handler {
  return (ctx) => {
    const { total, source, taken_at } = catalog.generation().meta;
    ctx.body = {
      [`total_${slug}_packages`]: total,
      source,
      note: `The data is a snapshot that is updated periodically; this one was taken at ${taken_at}.`,
    };
  };
}
