import { z } from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { Problem } from '../http/problems/problem.js';
import { problemResponse } from '../http/response/problem-response.js';
import { memoizedParser, parsePathParam } from '../http/request/query-params.js';
import { jsonResponse } from '../http/response/response.js';
import type { SnapshotRead } from '../read/snapshot-read.js';
import type { Catalog } from '../search/catalog.js';
import { exactName, PACKAGE_EXAMPLE, packageSchema, READ_PROBLEMS, snapshotParam } from './schemas.js';

const PREFIX = '/packages/';

const name = exactName.meta({
  description: 'The name, percent-encoded once; `/` may be literal.',
  examples: ['redis-redisearch'],
});

const queryParams = z.object({ snapshot: snapshotParam });

export const packageOperation: Operation = {
  id: 'getPackage',
  tag: 'Search',
  summary: 'The package with exactly this name',
  description: 'Clients normalise the paths of the names `.` and `..`: use `/lookup` for these.',
  params: queryParams.extend({ name }),
  responses: {
    200: {
      description: 'The package.',
      schema: packageSchema,
      example: PACKAGE_EXAMPLE,
      headers: ['X-Snapshot'],
    },
  },
  problems: [...READ_PROBLEMS, 'unknown_package'],
};

/** `GET /packages/{name}`: the package whose name equals the rest of the path, code point by code point. */
export function packageByName(catalog: Catalog): SnapshotRead<PackageQuery> {
  const parse = memoizedParser(queryParams);
  return {
    parse(ctx) {
      const { snapshot } = parse(ctx.querystring);
      return { snapshot, wanted: parsePathParam(name, 'name', restOfPath(ctx.req.url)) };
    },
    select: ({ snapshot }) => catalog.snapshots.select(snapshot),
    key: ({ wanted }) => `package ${wanted}`,
    async search({ wanted }, snapshot, requestId) {
      const found = (await catalog.lookup(snapshot, [wanted], requestId)).get(wanted);
      return found === undefined ? problemResponse(new Problem('unknown_package')) : jsonResponse(found);
    },
  };
}

type PackageQuery = z.output<typeof queryParams> & { wanted: string };

/** The raw path: a URL parser would cut it at a `#`. */
function restOfPath(url = ''): string {
  const end = url.indexOf('?');
  return url.slice(PREFIX.length, end === -1 ? undefined : end);
}
