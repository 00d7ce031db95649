import * as z from 'zod';
import { component } from '../../http/openapi/components.js';
import { limitParam } from '../schemas.js';
import { typedText } from '../suggest.js';
import { clientSearch, descriptionSchema, totalSchema } from './find.js';

const MAX_SIZE = 250;

/** Words by which the registry of npm filters its results, such as `author:jane`. */
const QUALIFIER = /(?<!\S)(?:author|boost-exact|is|keywords|maintainer|not|scope):\S*/g;

const packageSchema = component('NpmPackage', {
  name: z.string(),
  version: z.string(),
  description: descriptionSchema,
  keywords: z.array(z.string()).max(0),
  maintainers: z.array(z.string()).max(0),
  links: component('NpmLinks', { npm: z.string() }),
});

/** `GET /-/v1/search?text=&size=&from=` for npm and pnpm. npm fails without the arrays. */
export const npm = clientSearch({
  client: 'npm',
  params: z.object({
    text: typedText,
    size: limitParam(20, MAX_SIZE),
    from: z
      .string()
      .regex(/^\d+$/, 'must be a whole number in plain decimal digits')
      .transform(Number)
      .default(0)
      .meta({ type: 'integer', minimum: 0, description: 'The number of results to skip.' }),
  }),
  wanted: ({ text, size, from }) => ({ text: text.replace(QUALIFIER, ''), limit: size, offset: from }),
  results: {
    objects: z.array(component('NpmObject', { package: packageSchema })).max(MAX_SIZE),
    total: totalSchema,
    time: z.iso.datetime(),
  },
  body: ({ entries, total, time }) => ({
    objects: entries.map(({ name, version, description, url }) => ({
      package: { name, version, description, keywords: [], maintainers: [], links: { npm: url } },
    })),
    total,
    time,
  }),
  error: (error) => ({ error }),
});
