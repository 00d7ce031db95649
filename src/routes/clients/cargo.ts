import * as z from 'zod';
import type { Operation } from '../../http/openapi/document.js';
import { component } from '../../http/openapi/components.js';
import type { Handler } from '../../http/request/request-context.js';
import type { PublicUrlReader } from '../../http/request/public-url.js';
import { jsonResponse } from '../../http/response/response.js';
import type { Catalog } from '../../search/catalog.js';
import { MAX_TOTAL } from '../../search/tiered-search.js';
import { browseParams } from '../browse.js';
import { limitParam } from '../schemas.js';
import { clientSearch, jsonErrors, typedText } from './find.js';

const MAX_PER_PAGE = 100;

const params = z.object({
  q: typedText.meta({
    description: 'Words of a name, separated by white space or `+`.',
    examples: ['redis'],
  }),
  per_page: limitParam(10, MAX_PER_PAGE),
  page: browseParams.shape.page,
});

const crateSchema = component('Crate', {
  name: z.string(),
  max_version: z.string(),
  description: z.string().optional(),
});

export const cargoOperation: Operation = {
  id: 'searchForCargo',
  tag: 'Clients',
  summary: '`cargo search`',
  description: 'What `/search` finds for the words of `q` by weight.',
  params,
  response: {
    description: 'One page of results.',
    schema: component('Crates', {
      crates: z.array(crateSchema).max(MAX_PER_PAGE),
      meta: component('CratesMeta', { total: z.int().min(0).max(MAX_TOTAL) }),
    }),
    example: { crates: [{ name: 'redis', max_version: '1.0.0' }], meta: { total: 1 } },
    headers: ['X-Snapshot'],
  },
  problems: ['invalid_parameter', 'initializing', 'search_unavailable'],
  errors: jsonErrors(
    'CargoError',
    { errors: z.array(component('CargoErrorDetail', { detail: z.string() })) },
    (detail) => ({ errors: [{ detail }] }),
  ),
};

/** `GET /api/v1/crates?q=&per_page=&page=` for Cargo, which joins words with `+` before it encodes them. */
export function cargoSearch(catalog: Catalog) {
  return clientSearch(catalog, {
    client: 'cargo',
    params,
    wanted: ({ q, per_page: limit, page }) => ({
      text: q.replaceAll('+', ' ').trim(),
      limit,
      offset: (page - 1) * limit,
    }),
    body: ({ entries, total }) => ({
      crates: entries.map(({ name, version, description }) => ({ name, max_version: version, description })),
      meta: { total },
    }),
  });
}

export const cargoConfigOperation: Operation = {
  id: 'getCargoConfig',
  tag: 'Clients',
  summary: 'The configuration of a registry that has only a search',
  description: 'For `cargo search --index sparse+<address of this service>/`.',
  response: {
    description: 'Absolute addresses.',
    schema: component('CargoConfig', { dl: z.string(), api: z.string() }),
    example: { dl: 'https://search.example/api/v1/crates', api: 'https://search.example' },
  },
};

/** `GET /config.json` for Cargo. */
export function cargoConfig(publicUrlOf: PublicUrlReader): Handler {
  return ({ req }) => {
    const api = publicUrlOf(req);
    return jsonResponse({ dl: `${api}/api/v1/crates`, api }, { 'Cache-Control': 'no-cache' });
  };
}
