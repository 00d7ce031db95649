import * as z from 'zod';
import { component } from '../../http/openapi/components.js';
import { browseParams } from '../browse.js';
import { limitParam, MAX_LIMIT } from '../schemas.js';
import { typedText } from '../suggest.js';
import { clientConfig, clientSearch, descriptionSchema, totalSchema } from './find.js';

const MAX_PER_PAGE = 100;

const resultSchema = component('Found', {
  name: z.string(),
  description: descriptionSchema,
  url: z.string(),
});

/** `GET /search.json?q=&per_page=&page=` for Composer. */
export const composer = clientSearch({
  client: 'composer',
  params: z.object({ q: typedText, per_page: limitParam(15, MAX_PER_PAGE), page: browseParams.shape.page }),
  wanted: ({ q, per_page: limit, page }) => ({ text: q, limit, offset: (page - 1) * limit }),
  results: {
    results: z.array(resultSchema).max(MAX_PER_PAGE),
    total: totalSchema,
    next: z.string().optional().meta({ description: 'The next page, relative to this one.' }),
  },
  body: ({ entries, total }, { text, limit, offset }) => ({
    results: entries.map(({ name, description, url }) => ({ name, description, url })),
    total,
    ...(offset + limit < Math.min(total, MAX_LIMIT) && {
      next: `?q=${encodeURIComponent(text)}&per_page=${limit}&page=${offset / limit + 2}`,
    }),
  }),
  error: (warning) => ({ warning }),
});

/** `GET /packages.json`, the root of a repository. */
export const composerConfig = clientConfig(
  'composer',
  { packages: z.array(z.string()).max(0), search: z.string() },
  (base) => ({ packages: [], search: `${base}/search.json?q=%query%` }),
);
