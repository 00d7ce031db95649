import { expect } from 'chai';
import Koa from 'koa';
import { pino } from 'pino';
import { HttpServer } from '../../../src/http/http-server.js';
import { errorHandler, uncaughtErrorHandler } from '../../../src/http/error-handler.js';
import type { RequestState } from '../../../src/http/request-context.js';
import { expectProblem } from '../../support/expect-problem.js';
import { getRequest, RawConnection } from '../../support/raw-connection.js';
import { request } from '../../support/service.js';

const log = pino({ level: 'silent' });

describe('uncaughtErrorHandler', () => {
  const failures: [what: string, middleware: Koa.Middleware<RequestState>][] = [
    [
      'an error before the error handler',
      () => {
        throw new Error('secret');
      },
    ],
    [
      'an error after the error handler',
      async (ctx, next) => {
        await next();
        ctx.set('X-Other', 'of the response that failed');
        throw new Error('secret');
      },
    ],
    [
      'a thrown value that is not an error',
      () => {
        throw 'secret'; // eslint-disable-line @typescript-eslint/only-throw-error -- a dependency could
      },
    ],
    [
      'a body that cannot be sent',
      async (ctx, next) => {
        await next();
        ctx.body = { n: 1n };
      },
    ],
    [
      'an invalid header',
      async (ctx, next) => {
        await next();
        ctx.set('X-Other', 'a\nb');
      },
    ],
  ];
  for (const [what, middleware] of failures) {
    it(`responds with a problem to ${what}, and the server keeps running`, async () => {
      const app = new Koa<RequestState>();
      app.use(middleware);
      app.use(errorHandler(log));
      app.context.onerror = uncaughtErrorHandler(log);
      const respond = app.callback();
      const server = new HttpServer((message, response) => void respond(message, response), 10);
      const url = await server.listen(0, '127.0.0.1');
      try {
        for (let i = 0; i < 2; i++) {
          const answer = await request(url, { headers: { 'X-Request-Id': 'mine' } });
          expectProblem(answer, 500, 'internal');
          expect(answer.text).not.to.contain('secret');
          expect(answer.headers.get('X-Request-Id')).to.equal('mine');
          expect(answer.headers.get('X-Content-Type-Options')).to.equal('nosniff');
          expect(answer.headers.has('X-Other')).to.equal(false);
        }
        const head = await request(url, { method: 'HEAD' });
        expect(head.status).to.equal(500);
      } finally {
        await server.stop();
      }
    });
  }

  it('closes the connection if a response fails after its first byte', async () => {
    const app = new Koa();
    app.use(({ res }) => {
      res.write('a');
      throw new Error('late');
    });
    app.context.onerror = uncaughtErrorHandler(log);
    const respond = app.callback();
    const server = new HttpServer((message, response) => void respond(message, response), 10);
    const client = await RawConnection.open(await server.listen(0, '127.0.0.1'));
    client.send(getRequest('/'));
    await client.closed;
    await server.stop();
  });
});
