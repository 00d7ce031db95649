import * as z from 'zod';
import type { Operation } from '../../http/openapi/document.js';
import { component } from '../../http/openapi/components.js';
import type { Catalog } from '../../search/catalog.js';
import { MAX_TOTAL } from '../../search/tiered-search.js';
import { limitParam, PACKAGE_EXAMPLE } from '../schemas.js';
import { clientSearch, jsonErrors, typedText } from './find.js';

const MAX_SIZE = 250;

const params = z.object({
  text: typedText.meta({ description: 'Words of a name. Qualifiers are ignored.', examples: ['redis'] }),
  size: limitParam(20, MAX_SIZE),
  from: z
    .string()
    .regex(/^\d+$/, 'must be a whole number in plain decimal digits')
    .transform(Number)
    .default(0)
    .meta({ type: 'integer', minimum: 0, description: 'How many results to skip.' }),
});

/** Words by which the registry of npm filters its results, such as `author:jane`. */
const QUALIFIER = /(?<!\S)(?:author|boost-exact|is|keywords|maintainer|not|scope):\S*/g;

const packageSchema = component('NpmPackage', {
  name: z.string(),
  version: z.string(),
  description: z.string().optional(),
  keywords: z.array(z.string()).max(0),
  maintainers: z.array(z.string()).max(0),
  links: component('NpmLinks', { npm: z.string() }),
});

const { name, version, url } = PACKAGE_EXAMPLE;
const example = { name, version, keywords: [], maintainers: [], links: { npm: url } };

export const npmOperation: Operation = {
  id: 'searchForNpm',
  tag: 'Clients',
  summary: '`npm search`, and `pnpm search`',
  description: 'What `/search` finds for the words of `text` by weight.',
  params,
  response: {
    description: 'One page of results.',
    schema: component('NpmResults', {
      objects: z.array(component('NpmResult', { package: packageSchema })).max(MAX_SIZE),
      total: z.int().min(0).max(MAX_TOTAL),
      time: z.iso.datetime(),
    }),
    example: { objects: [{ package: example }], total: 1, time: '2026-01-02T03:04:05.678Z' },
    headers: ['X-Snapshot'],
  },
  problems: ['invalid_parameter', 'initializing', 'search_unavailable'],
  errors: jsonErrors('NpmError', { error: z.string() }, (error) => ({ error })),
};

/** `GET /-/v1/search?text=&size=&from=` for npm, which fails without the arrays. */
export function npmSearch(catalog: Catalog) {
  return clientSearch(catalog, {
    client: 'npm',
    params,
    wanted: ({ text, size, from }) => ({ text: text.replace(QUALIFIER, ''), limit: size, offset: from }),
    body: ({ entries, total }, _wanted, { meta }) => ({
      objects: entries.map(({ name, version, description, url }) => ({
        package: { name, version, description, keywords: [], maintainers: [], links: { npm: url } },
      })),
      total,
      time: meta.taken_at,
    }),
  });
}
