import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import type { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { Problem } from '../http/problems/problem.js';
import type { Handler } from '../http/request/request-context.js';
import { jsonResponse, NO_STORE } from '../http/response/response.js';

export const readyOperation: Operation = {
  id: 'getReadiness',
  tag: 'Service',
  summary: 'Whether this replica has reached Elasticsearch since it started',
  description:
    'For startup probes: a replica with a wrong key or address never becomes ready. Once it is ready, it stays so.',
  response: {
    description: 'Elasticsearch has accepted the key of this replica, whether or not there is a snapshot.',
    // Not a literal: generated Java clients with a boolean constant do not compile.
    schema: component('Readiness', { ready: z.boolean() }),
    example: { ready: true },
  },
  problems: ['search_unavailable'],
};

/** `GET /ready`: whether this replica has reached Elasticsearch since it started. */
export function ready(snapshots: SnapshotWatcher): Handler {
  return () => {
    if (!snapshots.hasReachedElasticsearch) {
      const detail = 'this replica has not reached the search engine since it started';
      throw new Problem('search_unavailable', { detail });
    }
    return jsonResponse({ ready: true }, NO_STORE);
  };
}
