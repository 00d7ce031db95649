import { expect } from 'chai';
import Koa from 'koa';
import { pino } from 'pino';
import { HttpServer } from '../../src/http/server/http-server.js';
import { respond, uncaughtErrorHandler } from '../../src/app.js';
import { BypassTokens } from '../../src/http/auth/bypass-token.js';
import { clientIpReader } from '../../src/http/middleware/client-address.js';
import type { RequestState } from '../../src/http/request/request-context.js';
import { expectProblem } from '../support/expect-problem.js';
import { getRequest, RawConnection } from '../support/raw-connection.js';
import { request } from '../support/service.js';

const log = pino({ level: 'silent' });
const services = {
  readAddress: clientIpReader([]),
  tokens: new BypassTokens(undefined, 'debian'),
};

/** Starts a server with this middleware. */
async function serve(
  ...middleware: Koa.Middleware<RequestState>[]
): Promise<{ server: HttpServer; url: string }> {
  const app = new Koa<RequestState>();
  for (const one of middleware) app.use(one);
  app.context.onerror = uncaughtErrorHandler(log);
  const serveRequest = app.callback();
  const server = new HttpServer((message, response) => void serveRequest(message, response), 10);
  return { server, url: await server.listen(0, '127.0.0.1') };
}

/** Middleware that does this to a finished response. */
const afterwards =
  (change: (ctx: Koa.Context) => void): Koa.Middleware<RequestState> =>
  async (ctx, next) => {
    await next();
    change(ctx);
  };

const fail = () => {
  throw new Error('secret');
};

describe('uncaughtErrorHandler', () => {
  const failures: [what: string, middleware: Koa.Middleware<RequestState>][] = [
    ['an error before the error handler', fail],
    [
      'an error after the error handler',
      afterwards((ctx) => {
        ctx.set('X-Other', 'of the response that failed');
        fail();
      }),
    ],
    [
      'a thrown value that is not an error',
      () => {
        throw 'secret'; // eslint-disable-line @typescript-eslint/only-throw-error -- a dependency could
      },
    ],
    ['a body that cannot be sent', afterwards((ctx) => (ctx.body = { n: 1n }))],
    ['an invalid header', afterwards((ctx) => ctx.set('X-Other', 'a\nb'))],
  ];
  for (const [what, middleware] of failures) {
    it(`responds with a problem to ${what}, and the server keeps running`, async () => {
      const { server, url } = await serve(
        middleware,
        respond(() => fail, services, log),
      );
      try {
        for (let i = 0; i < 2; i++) {
          const answer = await request(url, { headers: { 'X-Request-Id': 'mine' } });
          expectProblem(answer, 500, 'internal');
          expect(answer.text).not.to.contain('secret');
          expect(answer.headers.get('X-Request-Id')).to.equal('mine');
          expect(answer.headers.get('X-Content-Type-Options')).to.equal('nosniff');
          expect(answer.headers.has('X-Other')).to.equal(false);
        }
        expect(await request(url, { method: 'HEAD' })).to.include({ status: 500 });
      } finally {
        await server.stop();
      }
    });
  }

  it('closes the connection if a response fails after its first byte', async () => {
    const { server, url } = await serve(({ res }) => {
      res.write('a');
      throw new Error('late');
    });
    const client = await RawConnection.open(url);
    client.send(getRequest('/'));
    await client.closed;
    await server.stop();
  });
});
