import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import type { Cost } from '../http/limits/rate-limit.js';
import { parseParams } from '../http/request/query-params.js';
import { jsonResponse } from '../http/response/response.js';
import { nameInPackageUrl } from '../util/package-url.js';
import type { SnapshotRead } from '../read/snapshot-read.js';
import type { Catalog } from '../search/catalog.js';
import { exactName, PACKAGE_EXAMPLE, packageSchema, READ_PROBLEMS, snapshotParam } from './schemas.js';

const MAX_NAMES = 100;

/** Number of names that together cost one point of the rate limit. */
const NAMES_PER_POINT = 10;

/** @param purlType the accepted type of package URLs; without one, none are accepted. */
function lookupParams(purlType?: string) {
  const must = purlType
    ? `must be a package URL of this registry: pkg:${purlType}/<name>`
    : 'must not be given: this registry has no type of package URLs';
  const purl = z
    .string()
    .transform((purl) => ({ purl, name: purlType && nameInPackageUrl(purl, purlType) }))
    .pipe(z.object({ purl: z.string(), name: z.string(must).pipe(exactName) }));
  return z
    .object({
      name: z
        .array(exactName)
        .default([])
        .meta({
          maxItems: MAX_NAMES,
          description: `A name. Repeat it for up to ${MAX_NAMES} names that fit into a request of 16 KB.`,
          examples: [['redis-redisearch']],
        }),
      purl: z.array(purl).default([]).meta({
        maxItems: MAX_NAMES,
        description:
          'A package URL of the type of this registry, beside or instead of names. Its version is ignored.',
      }),
      snapshot: snapshotParam,
    })
    .refine(({ name, purl }) => name.length + purl.length > 0, {
      path: ['name'],
      error: 'or purl is required',
    })
    .refine(({ name, purl }) => name.length + purl.length <= MAX_NAMES, {
      path: ['name'],
      error: `and purl must be given at most ${MAX_NAMES} times together`,
    });
}

/** The names in the order of the query string. `purl` is the package URL that a name was in. */
interface LookupParams {
  names: { purl?: string; name: string }[];
  snapshot?: string | undefined;
}

function parse(schema: ReturnType<typeof lookupParams>, querystring: string): LookupParams {
  const { name, purl, snapshot } = parseParams(schema, querystring);
  const keys = [...new URLSearchParams(querystring).keys()];
  const [names, purls] = [name.values(), purl.values()];
  const inOrder = keys.map((key) => {
    if (key === 'purl') return purls.next().value;
    return key === 'name' ? { name: names.next().value as string } : undefined;
  });
  return { names: inOrder.filter((one) => one !== undefined), snapshot };
}

const resultSchema = component('LookupResult', {
  purl: z.string().optional(),
  name: z.string(),
  package: packageSchema.nullable(),
});

export const lookupOperation: Operation = {
  id: 'lookUpPackages',
  tag: 'Search',
  summary: 'Packages with the given names',
  description: `Costs one point of the rate limit for every ${NAMES_PER_POINT} names.`,
  params: lookupParams(),
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

export function lookupCost(purlType?: string) {
  const params = lookupParams(purlType);
  return {
    shown: { per_names: NAMES_PER_POINT },
    of: (querystring: string) => Math.ceil(parse(params, querystring).names.length / NAMES_PER_POINT),
  } satisfies Cost;
}

/**
 * `GET /lookup?name=&purl=`: the packages with these names, compared by the name rule of the snapshot.
 * @param purlType the type of the package URLs of this registry.
 */
export function lookup(catalog: Catalog, purlType?: string): SnapshotRead<LookupParams> {
  const params = lookupParams(purlType);
  return {
    parse: (querystring) => parse(params, querystring),
    key: ({ names }) => `lookup ${JSON.stringify(names)}`,
    async search({ names }, snapshot, requestId) {
      const asked = names.map(({ name }) => name);
      const found = await catalog.lookup(snapshot, asked, requestId);
      const results = names.map((one) => ({ ...one, package: found.get(one.name) ?? null }));
      const count = results.filter((result) => result.package !== null).length;
      return jsonResponse({ count, results });
    },
  };
}
