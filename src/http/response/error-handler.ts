import type { Middleware } from 'koa';
import type { Logger } from '../../log.js';
import { toProblem } from './error-to-problem.js';
import { Problem } from './problem.js';
import { problemResponse, sendProblem } from './problem-response.js';
import { requestIdOf, type Context, type RequestState } from '../request/request-context.js';
import { send } from './send.js';

/**
 * Turns errors of the middleware after it into `application/problem+json` (RFC 9457). An error that maps to
 * no problem is a defect: it is logged in full, and the response is a bare 500 `internal`.
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
      send(ctx, problemResponse(problem));
    }
  };
}

/** Responds 404 if no route has matched. */
export const notFound: Middleware<RequestState> = () => {
  throw new Problem('not_found');
};

/**
 * Creates the handler of errors that no middleware has caught, such as those while a response is sent. Koa's
 * default handler responds in plain text.
 */
export function uncaughtErrorHandler(log: Logger) {
  return function (this: Context, error: unknown): void {
    // Koa calls it after each response, too.
    if (error === null || error === undefined) return;
    const { req, res, state } = this;
    if (res.headersSent || !this.writable) {
      log.debug({ err: error }, 'connection lost while sending the response');
      if (!res.writableEnded) res.destroy();
      return;
    }
    const requestId = (state as Partial<RequestState>).requestId ?? requestIdOf(req);
    log.error({ request_id: requestId, err: error }, 'unexpected error while sending the response');
    for (const name of res.getHeaderNames()) res.removeHeader(name);
    sendProblem(res, new Problem('internal'), requestId);
  };
}
