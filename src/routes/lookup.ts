import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import type { Cost } from '../http/limits/rate-limit.js';
import { parseParams } from '../http/request/query-params.js';
import { jsonResponse } from '../http/response/response.js';
import type { SnapshotRead } from '../read/snapshot-read.js';
import type { Catalog } from '../search/catalog.js';
import { exactName, PACKAGE_EXAMPLE, packageSchema, READ_PROBLEMS, snapshotParam } from './schemas.js';

const MAX_NAMES = 100;

/** Number of names that together cost one point of the rate limit. */
const NAMES_PER_POINT = 10;

const lookupParams = z.object({
  name: z
    .array(exactName)
    .min(1, 'is required')
    .max(MAX_NAMES, `must be given at most ${MAX_NAMES} times`)
    .meta({
      description: `A name. Repeat it for up to ${MAX_NAMES} names that fit into a request of 16 KB.`,
      examples: [['redis-redisearch']],
    }),
  snapshot: snapshotParam,
});

const resultSchema = component('LookupResult', { name: z.string(), package: packageSchema.nullable() });

export const lookupOperation: Operation = {
  id: 'lookUpPackages',
  tag: 'Search',
  summary: 'Packages with the given names',
  description: `Costs one point of the rate limit for every ${NAMES_PER_POINT} names.`,
  params: lookupParams,
  response: {
    description:
      'One result for each name, in request order. `package` is `null` if no package has the name.',
    schema: component('LookupResults', {
      count: z.int().min(0).max(MAX_NAMES),
      results: z.array(resultSchema).min(1).max(MAX_NAMES),
    }),
    example: {
      count: 1,
      results: [
        { name: PACKAGE_EXAMPLE.name, package: PACKAGE_EXAMPLE },
        { name: 'redis-redisserch', package: null },
      ],
    },
    headers: ['X-Snapshot'],
  },
  emptyResponses: { 431: 'The names do not fit into the 16 KB of a request head.' },
  problems: READ_PROBLEMS,
};

export const LOOKUP_COST = {
  shown: { per_names: NAMES_PER_POINT },
  of: (querystring: string) =>
    Math.ceil(parseParams(lookupParams, querystring).name.length / NAMES_PER_POINT),
} satisfies Cost;

/** `GET /lookup?name=&name=`: the packages with these names, compared by the name rule of the snapshot. */
export function lookup(catalog: Catalog): SnapshotRead<z.output<typeof lookupParams>> {
  return {
    parse: (querystring) => parseParams(lookupParams, querystring),
    key: ({ name }) => `lookup ${JSON.stringify(name)}`,
    async search({ name: names }, snapshot, requestId) {
      const found = await catalog.lookup(snapshot, names, requestId);
      const results = names.map((name) => ({ name, package: found.get(name) ?? null }));
      const count = results.filter((result) => result.package !== null).length;
      return jsonResponse({ count, results });
    },
  };
}
