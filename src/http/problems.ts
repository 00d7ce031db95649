import type { Middleware } from 'koa';
import type { Logger } from '../log.js';
import { Problem, problemBody } from '../problem.js';
import type { RequestState } from './request-state.js';

/**
 * Turns what is thrown below it into `application/problem+json` (RFC 9457), and an unanswered request into 404.
 * An error that is not a `Problem` is a defect: logged whole, answered as a bare 500 `internal`.
 */
export function problems(log: Logger): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined) {
        throw new Problem(404, 'not_found', 'there is nothing at this path');
      }
    } catch (error) {
      const problem =
        error instanceof Problem
          ? error
          : new Problem(500, 'internal', 'an unexpected error', { cause: error });
      if (problem.status >= 500) {
        const level = problem.code === 'internal' ? 'error' : 'debug';
        const { path, state } = ctx;
        log[level](
          { request_id: state.requestId, path, code: problem.code, err: problem.cause },
          problem.detail,
        );
      }
      ctx.status = problem.status;
      ctx.set(problem.headers);
      ctx.set('Cache-Control', 'no-store');
      ctx.body = JSON.stringify({
        ...problemBody(problem.status, problem.code, problem.detail),
        ...problem.members,
      });
      ctx.type = 'application/problem+json';
    }
  };
}
