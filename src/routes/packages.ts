import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { Problem } from '../http/problems/problem.js';
import { memoized, parseParams, parsePathParam } from '../http/request/query-params.js';
import { jsonResponse, problemResponse } from '../http/response/response.js';
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
  summary: 'The package with this name',
  description:
    'Names are equal by `name_rule` of `/stats`; without it, exactly. Clients normalise the paths of `.` and `..`: use `/lookup` for these names.',
  params: queryParams.extend({ name }),
  response: {
    description: 'The package.',
    schema: packageSchema,
    example: PACKAGE_EXAMPLE,
    headers: ['X-Snapshot', 'Content-Location'],
  },
  problems: [...READ_PROBLEMS, 'unknown_package'],
};

/** `GET /packages/{name}`: the package whose name equals the rest of the path, by the name rule of the snapshot. */
export function packageByName(catalog: Catalog): SnapshotRead<PackageQuery> {
  const parse = memoized((querystring) => parseParams(queryParams, querystring));
  return {
    parse(querystring, url) {
      const { snapshot } = parse(querystring);
      // The raw path: a URL parser would cut it at a `#`.
      const end = url.indexOf('?');
      const path = url.slice(PREFIX.length, end === -1 ? undefined : end);
      return { snapshot, wanted: parsePathParam(name, 'name', path), depth: path.split('/').length - 1 };
    },
    key: ({ wanted, depth }, { meta }) => `package ${meta.name_rule === 'exact' ? '' : `${depth} `}${wanted}`,
    async search({ wanted, depth }, snapshot, requestId) {
      const found = (await catalog.lookup(snapshot, [wanted], requestId)).get(wanted);
      if (found === undefined) return problemResponse(new Problem('unknown_package'));
      const isCanonicalPath = found.name === wanted || IS_DOTS.test(found.name);
      // Relative to the requested path, so that it works behind a proxy that adds a path prefix.
      const location = ('../'.repeat(depth) || './') + encodeURIComponent(found.name);
      return jsonResponse(found, isCanonicalPath ? {} : { 'Content-Location': location });
    },
  };
}

/** The parameters, the name (`wanted`), and the number of literal slashes in the name (`depth`). */
type PackageQuery = z.output<typeof queryParams> & { wanted: string; depth: number };

/** The names `.` and `..`. Clients resolve these path segments, so no path leads to packages with these names. */
const IS_DOTS = /^\.\.?$/;
