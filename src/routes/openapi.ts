import { z } from 'zod';
import type { Operation } from '../http/response/openapi.js';
import { constantResponse } from '../http/response/constant-response.js';
import type { Handler } from '../http/request/request-context.js';
import { jsonResponse } from '../http/response/response.js';

export const openApiOperation: Operation = {
  summary: 'This document',
  responses: {
    200: {
      description: 'OpenAPI 3.1 for all endpoints.',
      schema: z.looseObject({ openapi: z.literal('3.1.0') }),
      example: { openapi: '3.1.0' },
    },
  },
  problems: [],
};

/** `GET /openapi.json`: the OpenAPI document of all endpoints. */
export function openApi(document: object): Handler {
  return constantResponse(jsonResponse(document), 'public, max-age=300');
}
