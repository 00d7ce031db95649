import * as z from 'zod';
import type { Operation } from '../../http/openapi/document.js';
import { component } from '../../http/openapi/components.js';
import type { Handler } from '../../http/request/request-context.js';
import type { PublicUrlReader } from '../../http/request/public-url.js';
import { jsonResponse } from '../../http/response/response.js';
import type { Catalog } from '../../search/catalog.js';
import { MAX_TOTAL } from '../../search/tiered-search.js';
import { browseParams } from '../browse.js';
import { limitParam, MAX_LIMIT, PACKAGE_EXAMPLE } from '../schemas.js';
import { clientSearch, jsonErrors, typedText, type Found, type Wanted } from './find.js';

const MAX_PER_PAGE = 100;

const params = z.object({
  q: typedText.meta({ description: 'Words of a name.', examples: ['redis'] }),
  per_page: limitParam(15, MAX_PER_PAGE),
  page: browseParams.shape.page,
});

const resultSchema = component('ComposerResult', {
  name: z.string(),
  description: z.string().optional(),
  url: z.string(),
});

const { name, url } = PACKAGE_EXAMPLE;

export const composerOperation: Operation = {
  id: 'searchForComposer',
  tag: 'Clients',
  summary: '`composer search`',
  description: 'What `/search` finds for the words of `q` by weight.',
  params,
  response: {
    description: 'One page of results, and the relative address of the next one.',
    schema: component('ComposerResults', {
      results: z.array(resultSchema).max(MAX_PER_PAGE),
      total: z.int().min(0).max(MAX_TOTAL),
      next: z.string().optional(),
    }),
    example: { results: [{ name, url }], total: 1 },
    headers: ['X-Snapshot'],
  },
  problems: ['invalid_parameter', 'initializing', 'search_unavailable'],
  errors: jsonErrors('ComposerError', { warning: z.string() }, (warning) => ({ warning })),
};

/** `GET /search.json?q=&per_page=&page=` for Composer. */
export function composerSearch(catalog: Catalog) {
  return clientSearch(catalog, {
    client: 'composer',
    params,
    wanted: ({ q, per_page: limit, page }) => ({ text: q, limit, offset: (page - 1) * limit }),
    body: (found, wanted) => ({
      results: found.entries.map(({ name, description, url }) => ({ name, description, url })),
      total: found.total,
      next: nextOf(found, wanted),
    }),
  });
}

function nextOf({ total }: Found, { text, limit, offset }: Wanted): string | undefined {
  const next = offset + limit;
  if (next >= Math.min(total, MAX_LIMIT)) return undefined;
  return `?q=${encodeURIComponent(text)}&per_page=${limit}&page=${next / limit + 1}`;
}

export const composerConfigOperation: Operation = {
  id: 'getComposerRepository',
  tag: 'Clients',
  summary: 'A Composer repository that has a search and no packages',
  description: 'For `repositories` in `composer.json`.',
  response: {
    description: 'The absolute address of the search.',
    schema: component('ComposerRepository', { packages: z.array(z.string()).max(0), search: z.string() }),
    example: { packages: [], search: 'https://search.example/search.json?q=%query%' },
  },
};

/** `GET /packages.json` for Composer. */
export function composerConfig(publicUrlOf: PublicUrlReader): Handler {
  return ({ req }) => {
    const search = `${publicUrlOf(req)}/search.json?q=%query%`;
    return jsonResponse({ packages: [], search }, { 'Cache-Control': 'no-cache' });
  };
}
