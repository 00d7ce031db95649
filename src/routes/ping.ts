import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import type { Handler } from '../http/request/request-context.js';
import { jsonResponse, NO_STORE } from '../http/response/response.js';

export const pingOperation: Operation = {
  id: 'ping',
  tag: 'Service',
  summary: 'Whether the process is alive',
  description: 'Responds in every state.',
  response: {
    description: 'The process is alive.',
    schema: component('Pong', { ping: z.literal('pong') }),
    example: { ping: 'pong' },
  },
};

/** `GET /ping`: the process is alive. Responds in every state. */
export const ping: Handler = () => jsonResponse({ ping: 'pong' }, NO_STORE);
