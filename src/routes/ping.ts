import { z } from 'zod';
import type { Operation } from '../http/openapi.js';
import type { Handler } from '../http/request-context.js';

export const pingOperation: Operation = {
  summary: 'Whether the process is alive',
  description: 'Answers in every state.',
  responses: {
    200: {
      description: 'It is.',
      schema: z.strictObject({ ping: z.literal('pong') }),
      example: { ping: 'pong' },
    },
  },
  problems: [],
};

/** `GET /ping`: the process is alive, whatever else is. */
export function ping(): Handler {
  return (ctx) => {
    ctx.body = { ping: 'pong' };
  };
}
