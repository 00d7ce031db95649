import { z } from 'zod';
import { respondFromCache } from '../http/cached-response.js';
import type { Operation } from '../http/openapi.js';
import { Problem } from '../http/problem.js';
import { problemResponse } from '../http/problem-response.js';
import { memoizedParser, parsePathParam } from '../http/query-params.js';
import type { Handler } from '../http/request-context.js';
import { jsonResponse, type BodyResponse } from '../http/response.js';
import type { ResponseCache } from '../http/response-cache.js';
import type { Catalog } from '../search/catalog.js';
import type { PackageEntry } from '../search/package-document.js';
import {
  exactName,
  PACKAGE_EXAMPLE,
  packageSchema,
  READ_PROBLEMS,
  SNAPSHOT_HEADERS,
  snapshotParam,
} from './schemas.js';

const PREFIX = '/packages/';

const name = exactName.meta({
  description: 'The name, percent-encoded once; `/` may be literal.',
  examples: ['redis-redisearch'],
});

const queryParams = z.object({ snapshot: snapshotParam });

export const packageOperation: Operation = {
  summary: 'The package with exactly this name',
  description: 'Clients normalise the paths of the names `.` and `..`: use `/lookup` for these.',
  params: queryParams.extend({ name }),
  responses: {
    200: {
      description: 'The package.',
      schema: packageSchema,
      example: PACKAGE_EXAMPLE,
      headers: SNAPSHOT_HEADERS,
    },
  },
  problems: [...READ_PROBLEMS, 'unknown_package'],
  problemHeaders: { unknown_package: SNAPSHOT_HEADERS },
};

/** `GET /packages/{name}`: the package whose name equals the rest of the path, code point by code point. */
export function packageByName(catalog: Catalog, cache: ResponseCache): Handler {
  const parse = memoizedParser(queryParams);
  return (ctx) => {
    const { snapshot } = parse(ctx.querystring);
    const wanted = parsePathParam(name, 'name', restOfPath(ctx.req.url));
    return catalog.read(snapshot, (generation) =>
      respondFromCache(ctx, cache, generation, `package ${wanted}`, async () => {
        const found = await catalog.lookup(generation, [wanted], ctx.state.requestId);
        return render(found.get(wanted));
      }),
    );
  };
}

/** The raw path: a URL parser would cut it at a `#`. */
function restOfPath(url = ''): string {
  const end = url.indexOf('?');
  return url.slice(PREFIX.length, end === -1 ? undefined : end);
}

function render(found: PackageEntry | undefined): BodyResponse {
  return found === undefined ? problemResponse(new Problem('unknown_package')) : jsonResponse(found);
}
