import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import { PHASES } from '../rebuild/progress.js';
import type { SnapshotWatcher } from '../snapshot/snapshot-watcher.js';
import { secretParams, type SecretAuth } from '../http/auth/secret-auth.js';
import { Problem } from '../http/problems/problem.js';
import { ElasticsearchUnavailableError } from '../elasticsearch/elasticsearch-errors.js';
import type { RebuildService } from '../rebuild/rebuild-service.js';
import type { Handler } from '../http/request/request-context.js';
import { jsonResponse, NO_STORE } from '../http/response/response.js';
import { flagParam } from './schemas.js';

export const rebuildParams = secretParams.extend({
  force: flagParam.meta({ description: 'Accepts a snapshot that is much smaller than the current one.' }),
});

const progressMembers = {
  phase: z.enum(PHASES).meta({ id: 'RebuildPhase' }),
  rows: z.int().nonnegative(),
  total_rows: z.int().nonnegative().nullable(),
  bytes: z.int().nonnegative().nullable().meta({
    description: 'Bytes received, merged or copied so far; null in all other phases.',
  }),
  total_bytes: z.int().nonnegative().nullable().meta({ description: 'The approximate total.' }),
  started_at: z.iso.datetime(),
  last_failure: component('RebuildFailure', { at: z.iso.datetime(), reason: z.string() }).nullable(),
};

const PROGRESS_EXAMPLE = {
  phase: 'loading',
  rows: 20000,
  total_rows: 63666,
  bytes: null,
  total_bytes: null,
  started_at: '2026-01-02T03:04:05.678Z',
  last_failure: null,
};

export const rebuildOperation: Operation = {
  id: 'startRebuild',
  tag: 'Access',
  summary: 'Starts a rebuild in the background',
  description: 'The current snapshot is served until the rebuild has succeeded.',
  params: rebuildParams,
  status: 202,
  response: {
    description: 'The rebuild has started.',
    schema: component('Rebuild', { status: z.literal('rebuilding'), ...progressMembers }),
    example: { status: 'rebuilding', ...PROGRESS_EXAMPLE },
  },
  problems: ['invalid_parameter', 'forbidden', 'rate_limited', 'rebuilding', 'search_unavailable'],
  members: { rebuilding: { shape: progressMembers, example: PROGRESS_EXAMPLE } },
};

/** `GET /rebuild?secret=&force=`: starts a rebuild in the background. */
export function startRebuild(
  secrets: SecretAuth,
  rebuilds: RebuildService,
  snapshots: SnapshotWatcher,
  secret: string | undefined,
): Handler {
  return async (ctx) => {
    const { force } = await secrets.authorize(ctx, rebuildParams, secret);
    if (snapshots.state === 'unreachable') {
      throw new ElasticsearchUnavailableError('Elasticsearch did not respond to the last poll');
    }
    const { state, ended } = await rebuilds.start({ force: force === 'true' });
    const { last_failure: failure } = state;
    const members = {
      phase: state.phase,
      rows: state.rows,
      total_rows: state.total_rows ?? null,
      bytes: state.bytes ?? null,
      total_bytes: state.total_bytes ?? null,
      started_at: toIso(state.started_at),
      last_failure: failure === undefined ? null : { at: toIso(failure.at), reason: failure.reason },
    };
    if (ended === undefined) throw new Problem('rebuilding', { members });
    return jsonResponse({ status: 'rebuilding', ...members }, NO_STORE, 202);
  };
}

function toIso(ms = 0): string {
  return new Date(ms).toISOString();
}
