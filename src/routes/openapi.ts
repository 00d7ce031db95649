import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { constantResponse } from '../http/response/constant-response.js';
import type { Handler } from '../http/request/request-context.js';
import { jsonResponse } from '../http/response/response.js';
import { PACKAGE_EXAMPLE } from './schemas.js';

const QUERY = 'redis-redisearch';

/** An introduction to the API, and rules that apply to all requests, in Markdown. */
export const OVERVIEW = `Lists all package names of a registry, and finds them by any part. All operations are \`GET\`, except \`pip search\`.

## A first request

[\`/search?q=${QUERY}&limit=1\`](search?q=${QUERY}&limit=1) returns the best match:

\`\`\`json
{"query":"${QUERY}","count":1,"results":[
  ${JSON.stringify({ ...PACKAGE_EXAMPLE, rank: 0 })}
]}
\`\`\`

\`rank\` is 0 if the name equals the query, 1 if it starts with it, 2 if it contains it. With \`match=words\`, it is 0 if the name is the words
without regard to separators, 1 if it starts with the first word.

## Pages

If more names match, the response has \`X-Results-Truncated: true\` and \`Link: <?q=…&after=…>; rel="next"\`. Following \`next\` to the end
returns each match once, all from the snapshot in \`X-Snapshot\`.

## Limits

Each client address has a limit of points: \`RateLimit: "reading";r=117;t=42\` means that 117 are left for 42 seconds. Most requests cost
one. Without enough points the response is 429, and \`Retry-After\` says when to try again.

## Errors

Errors are \`application/problem+json\` (RFC 9457): \`code\` is for programs, \`detail\` for people.`;

export const openApiOperation: Operation = {
  id: 'getOpenApiDocument',
  tag: 'Service',
  summary: 'This document',
  description: 'For generators of clients, and for tools that test or show an API.',
  response: {
    description: 'OpenAPI 3.1 for all endpoints.',
    schema: z.looseObject({ openapi: z.literal('3.1.0') }).meta({ id: 'OpenApiDocument' }),
    example: { openapi: '3.1.0' },
  },
};

/** `GET /openapi.json`: the OpenAPI document of all endpoints. */
export function openApi(document: object): Handler {
  return constantResponse(jsonResponse(document), 'public, max-age=300');
}
