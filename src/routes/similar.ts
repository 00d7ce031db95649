import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import { memoized, parseParams } from '../http/request/query-params.js';
import { bodyResponse } from '../http/response/response.js';
import type { SnapshotRead } from '../read/snapshot-read.js';
import type { Catalog } from '../search/catalog.js';
import { writeResponseBody } from '../snapshot/package-document.js';
import {
  limitParam,
  PACKAGE_EXAMPLE,
  packageSchema,
  READ_PROBLEMS,
  snapshotParam,
  sortParam,
  trimmedText,
} from './schemas.js';

/** Points of the rate limit that a request costs. */
export const SIMILAR_COST = 3;

/** Maximum length of a trimmed name, in code points. */
const MAX_NAME_LENGTH = 100;

const MAX_RESULTS = 50;

/** A trimmed name, which need not exist. */
export const similarText = trimmedText(1, MAX_NAME_LENGTH).meta({ id: 'NameLike' });

const similarParams = z.object({
  name: similarText.meta({
    description: `A name, which need not exist, 1 to ${MAX_NAME_LENGTH} characters after trimming.`,
    examples: ['redis-redisaerch'],
  }),
  limit: limitParam(10, MAX_RESULTS),
  sort: sortParam('distance'),
  snapshot: snapshotParam,
});

const resultSchema = packageSchema.extend({ distance: z.int().min(0).max(2) }).meta({ id: 'SimilarPackage' });

export const similarOperation: Operation = {
  id: 'findSimilarPackages',
  tag: 'Search',
  summary: 'Packages whose names are easily mistaken for a name',
  description:
    'Names are compared in lower case and without `-`, `_`, `.` and spaces. `distance` is the number of ' +
    'characters to insert, delete, replace or swap with the next one. Its maximum is 2 for names with 6 or ' +
    `more characters, 1 for 3 to 5, and 0 for fewer. Costs ${SIMILAR_COST} points of the rate limit.`,
  params: similarParams,
  response: {
    description: 'The nearest names, sorted by distance, then in the requested order; never the name itself.',
    schema: component('SimilarPackages', {
      name: z.string(),
      count: z.int().min(0).max(MAX_RESULTS),
      results: z.array(resultSchema).max(MAX_RESULTS),
    }),
    example: { name: 'redis-redisaerch', count: 1, results: [{ ...PACKAGE_EXAMPLE, distance: 1 }] },
    headers: ['X-Snapshot', 'X-Results-Truncated'],
  },
  problems: READ_PROBLEMS,
};

/** `GET /similar?name=&limit=&sort=`: names that are easily mistaken for a name. */
export function similar(catalog: Catalog): SnapshotRead<z.output<typeof similarParams>> {
  return {
    parse: memoized((querystring) => parseParams(similarParams, querystring)),
    key: ({ name, limit, sort }) => `similar ${sort === 'weight' ? 'weight ' : ''}${limit} ${name}`,
    async search({ name, limit, sort }, snapshot, requestId) {
      const query = { name, limit, byWeight: sort === 'weight' };
      const { groups, count, truncated } = await catalog.similar(snapshot, query, requestId);
      const body = writeResponseBody(`{"name":${JSON.stringify(name)},"count":${count},"results":[`, groups);
      return bodyResponse(body, truncated ? { 'X-Results-Truncated': 'true' } : {});
    },
  };
}
