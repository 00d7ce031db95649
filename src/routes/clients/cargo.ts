import * as z from 'zod';
import { component } from '../../http/openapi/components.js';
import { browseParams } from '../browse.js';
import { limitParam } from '../schemas.js';
import { typedText } from '../suggest.js';
import { clientConfig, clientSearch, descriptionSchema, totalSchema } from './find.js';

const MAX_PER_PAGE = 100;

const crateSchema = component('Crate', {
  name: z.string(),
  max_version: z.string(),
  description: descriptionSchema,
});

/** `GET /api/v1/crates?q=&per_page=&page=` for Cargo, which joins words with `+` before it encodes them. */
export const cargo = clientSearch({
  client: 'cargo',
  params: z.object({ q: typedText, per_page: limitParam(10, MAX_PER_PAGE), page: browseParams.shape.page }),
  wanted: ({ q, per_page: limit, page }) => ({
    text: q.replaceAll('+', ' '),
    limit,
    offset: (page - 1) * limit,
  }),
  results: {
    crates: z.array(crateSchema).max(MAX_PER_PAGE),
    meta: component('CratesMeta', { total: totalSchema }),
  },
  body: ({ entries, total }) => ({
    crates: entries.map(({ name, version, description }) => ({ name, max_version: version, description })),
    meta: { total },
  }),
  error: (detail) => ({ errors: [{ detail }] }),
});

/** `GET /config.json`, the root of a sparse index. */
export const cargoConfig = clientConfig('cargo', { dl: z.string(), api: z.string() }, (base) => ({
  dl: `${base}/api/v1/crates`,
  api: base,
}));
