import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import type { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { retryAfter } from '../http/problems/problem.js';
import type { Handler } from '../http/request/request-context.js';
import { jsonResponse, NO_STORE } from '../http/response/response.js';

const RETRY_AFTER_SECONDS = 2;

const schema = component('Health', {
  status: z.enum(['ok', 'initializing', 'unavailable']),
  total_packages: z.int().nonnegative(),
});

export const healthOperation: Operation = {
  id: 'getHealth',
  tag: 'Service',
  summary: 'Whether the service can search',
  description: 'For load balancers. A 503 has the same shape as a 200.',
  response: {
    description: 'The service can search.',
    schema,
    example: { status: 'ok', total_packages: 63666 },
  },
  otherResponses: {
    503: {
      description:
        '`initializing`: the first snapshot is being loaded. `unavailable`: Elasticsearch does not respond, ' +
        'or its index cannot be served.',
      schema,
      example: { status: 'initializing', total_packages: 0 },
      headers: ['Retry-After'],
    },
  },
};

/**
 * `GET /health`. A 503 has the same shape as a 200. `unavailable`: Elasticsearch does not respond, or its index cannot
 * be served.
 */
export function health(snapshots: SnapshotWatcher): Handler {
  return () => {
    const { current, state } = snapshots;
    const status = state === 'present' ? 'ok' : state === 'absent' ? 'initializing' : 'unavailable';
    const body = { status, total_packages: current?.meta.total ?? 0 };
    if (status === 'ok') return jsonResponse(body, NO_STORE);
    return jsonResponse(body, { ...NO_STORE, ...retryAfter(RETRY_AFTER_SECONDS) }, 503);
  };
}
