import type { Middleware } from 'koa';
import type { Logger } from '../log.js';
import { toProblem } from './error-to-problem.js';
import { Problem } from './problem.js';
import { sendProblem } from './problem-response.js';
import { requestIdOf } from './request-id.js';
import type { Context, RequestState } from './request-context.js';

/**
 * Turns what is thrown below it into `application/problem+json` (RFC 9457).
 * An error that is not a `Problem` is a defect: logged whole, answered as a bare 500 `internal`.
 */
export function errorHandler(log: Logger): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const problem = toProblem(error);
      if (problem.status >= 500) {
        const level = problem.code === 'internal' ? 'error' : 'debug';
        const { path, state } = ctx;
        log[level](
          { request_id: state.requestId, path, code: problem.code, err: problem.cause },
          problem.message,
        );
      }
      ctx.status = problem.status;
      ctx.set(problem.headers);
      ctx.set('Cache-Control', 'no-store');
      ctx.body = JSON.stringify(problem.body);
      ctx.type = 'application/problem+json';
    }
  };
}

/** Answers 404 to what no route has answered. */
export const notFound: Middleware<RequestState> = () => {
  throw new Problem('not_found');
};

/**
 * Makes the handler of errors that no middleware has caught, such as those while the response is sent: Koa's own one
 * answers in plain text.
 */
export function uncaughtErrorHandler(log: Logger) {
  return function (this: Context, error: unknown): void {
    // Koa calls it after each response, too.
    if (error === null || error === undefined) return;
    const { req, res, state } = this;
    if (res.headersSent || !this.writable) {
      log.debug({ err: error }, 'a connection broke');
      if (!res.writableEnded) res.destroy();
      return;
    }
    const requestId = (state as Partial<RequestState>).requestId ?? requestIdOf(req);
    log.error({ request_id: requestId, err: error }, 'an unexpected error');
    for (const name of res.getHeaderNames()) res.removeHeader(name);
    sendProblem(res, new Problem('internal'), requestId);
  };
}
