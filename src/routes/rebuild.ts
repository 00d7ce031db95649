import type { Generations } from '../catalog/generation.js';
import { parseParams, rebuildParams } from '../http/params.js';
import type { SecretCheck } from '../http/secret-check.js';
import { searchUnavailable, unavailable } from '../problem.js';
import { LockUnavailable } from '../rebuild/lock.js';
import type { Rebuilds, StartAnswer } from '../rebuild/rebuilds.js';
import type { Handler } from './handler.js';

const RETRY_AFTER_SECONDS = 5;

/** `GET /rebuild?secret=&force=`: begins a rebuild in the background. */
export function startRebuild(
  secrets: SecretCheck,
  rebuilds: Rebuilds,
  generations: Generations,
  secret: string | undefined,
): Handler {
  return async (ctx) => {
    const params = parseParams(rebuildParams, ctx.querystring);
    await secrets.check(ctx, params.secret, secret);
    if (generations.engine === 'unreachable') throw searchUnavailable();
    const answer = await rebuilds.start({ force: params.force === 'true' }).catch((error: unknown) => {
      if (!(error instanceof LockUnavailable)) throw error;
      throw unavailable(
        'search_unavailable',
        'no rebuild can begin while Redis does not answer: it tells whether another replica rebuilds',
        RETRY_AFTER_SECONDS,
      );
    });
    if (!answer.accepted) {
      throw unavailable(
        'rebuilding',
        'a rebuild is running; the snapshot before it is served',
        RETRY_AFTER_SECONDS,
        { members: describe(answer) },
      );
    }
    ctx.status = 202;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { status: 'rebuilding', ...describe(answer) };
  };
}

function describe({ progress, lastFailure }: StartAnswer) {
  const { phase, rows, total, startedAt } = progress;
  return {
    phase,
    rows,
    total_rows: total ?? null,
    started_at: startedAt,
    last_failure: lastFailure ?? null,
  };
}
