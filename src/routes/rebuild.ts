import type { Generations } from '../catalog/generation.js';
import type { Limits } from '../http/limits.js';
import { parseParams, rebuildParams } from '../http/params.js';
import { searchUnavailable, unavailable } from '../problem.js';
import type { ProgressReport } from '../rebuild/progress.js';
import type { Rebuilds } from '../rebuild/rebuilds.js';
import type { Handler } from './handler.js';

const RETRY_AFTER_SECONDS = 5;

/** `GET /rebuild?secret=&force=`: begins a rebuild in the background. */
export function startRebuild(
  limits: Limits,
  rebuilds: Rebuilds,
  generations: Generations,
  secret: string | undefined,
): Handler {
  const checkSecret = limits.secretCheck();
  return async (ctx) => {
    const params = parseParams(rebuildParams, ctx.querystring);
    await checkSecret(ctx, params.secret, secret);
    if (generations.engine === 'unreachable') throw searchUnavailable();
    const lastFailure = rebuilds.lastFailure ?? null;
    const { accepted, progress } = rebuilds.start({ force: params.force === 'true', skipUnchanged: false });
    if (!accepted) {
      throw unavailable(
        'rebuilding',
        'a rebuild is running; the snapshot before it is served',
        RETRY_AFTER_SECONDS,
        {
          members: { ...describe(progress), last_failure: lastFailure },
        },
      );
    }
    ctx.status = 202;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { status: 'rebuilding', ...describe(progress), last_failure: lastFailure };
  };
}

function describe({ phase, rows, total, startedAt }: ProgressReport) {
  return { phase, rows, total_rows: total ?? null, started_at: startedAt };
}
