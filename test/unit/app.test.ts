import Koa from 'koa';
import { expect } from 'chai';
import { HttpServer } from '../../src/http/server/http-server.js';
import { createApp, respond } from '../../src/app.js';
import { readConfig } from '../../src/config/config.js';
import { BypassTokens } from '../../src/http/auth/bypass-token.js';
import { clientAddressReader } from '../../src/http/request/client-address.js';
import type { RequestState } from '../../src/http/request/request-context.js';
import { ResponseCache } from '../../src/read/response-cache.js';
import { createLogger } from '../../src/util/log.js';
import { expectProblem } from '../support/expect-problem.js';
import { request } from '../support/service.js';

describe('The app', () => {
  const lines: string[] = [];
  const log = createLogger('info', { destination: { write: (line) => void lines.push(line) } });
  const tokens = new BypassTokens(undefined, 'debian');
  beforeEach(() => (lines.length = 0));

  /** Serves an app meanwhile. */
  async function serving(app: Koa<RequestState>, use: (url: string) => Promise<void>): Promise<void> {
    const respondTo = app.callback();
    const server = new HttpServer((message, response) => void respondTo(message, response), 10);
    await use(await server.listen(0, '127.0.0.1'));
    await server.stop();
  }

  it('responds to an unexpected error with a problem that shows nothing of it', async () => {
    const app = new Koa<RequestState>();
    const fail = () => {
      throw new Error('secret');
    };
    app.use(respond(() => fail, { readAddress: clientAddressReader([]), tokens }, log));
    await serving(app, async (url) => {
      for (let i = 0; i < 2; i++) {
        const answer = await request(url, { headers: { 'X-Request-Id': 'mine' } });
        expectProblem(answer, 500, 'internal');
        expect(answer.text).not.to.contain('secret');
        expect(answer.headers.get('X-Request-Id')).to.equal('mine');
      }
      expect(await request(url, { method: 'HEAD' })).to.include({ status: 500, text: '' });
    });
    expect(lines).to.have.length(3);
    for (const line of lines) expect(JSON.parse(line)).to.have.nested.property('err.message', 'secret');
  });

  it('logs why a response cannot be sent', async () => {
    const config = readConfig({ ELASTICSEARCH_URL: 'http://127.0.0.1:9200' });
    const app = createApp({
      config,
      log,
      tokens,
      onResponse: (route) => {
        if (route === '/ping') throw new Error('secret');
      },
      cache: new ResponseCache(0),
      rateLimits: { redis: undefined, slug: 'debian', log, stats: new Map() },
      registry: {} as never,
      exports: {} as never,
    });
    await serving(app, async (url) => {
      const answer = await request(`${url}/ping`);
      expect(answer.status).to.equal(500);
      expect(answer.text).not.to.contain('secret');
      expect((await request(`${url}/nothing`)).status).to.equal(404);
    });
    expect(lines.map((line) => JSON.parse(line) as object)).to.have.length(1);
    expect(lines[0]).to.contain('secret').and.contain('could not be sent');
  });
});
