import { rejects } from 'node:assert/strict';
import { createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { checkRedis } from '../../../dev/check-redis.js';
import { createRedis, describeRedisError } from '../../../src/redis/redis.js';
import { createLogger } from '../../../src/util/log.js';
import { listen } from '../../support/listen.js';
import { waitFor } from '../../support/wait-for.js';

/** Connects to a server that handles connections like this, until there have been several, and returns the log. */
async function logOf(handle: (socket: Socket, connection: number) => void, attempts: number[] = []) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    handle(socket, attempts.push(performance.now()));
  });
  const { port, close } = await listen(server);
  const lines: { msg: string; err?: { message: string } }[] = [];
  const write = (line: string) => lines.push(JSON.parse(line) as (typeof lines)[number]);
  const log = createLogger('info', { destination: { write } });
  const redis = await createRedis(`redis://u:change-me@127.0.0.1:${port}`, log, 'counting locally', 2000);
  try {
    await waitFor(() => attempts.length > 5, 'further attempts');
    return lines;
  } finally {
    redis.disconnect();
    await close();
  }
}

describe('A Redis that does not respond', () => {
  it('is tried again after a tenth of a second more each time', async () => {
    const attempts: number[] = [];
    await logOf((socket) => socket.destroy(), attempts);
    const pauses = attempts.slice(1).map((time, i) => time - (attempts[i] as number));
    for (const [i, pause] of pauses.entries()) expect(pause).to.be.within(100 * i + 80, 100 * i + 200);
  });

  it('is logged once for each reason', async () => {
    const lines = await logOf((socket, connection) => {
      socket.on('data', (data) => {
        const commands = String(data).match(/^\*\d/gm) ?? [];
        socket.write(commands.map(() => `-WRONGPASS ${connection < 3 ? 'first' : 'second'}\r\n`).join(''));
        setTimeout(() => socket.end(), 20);
      });
    });
    const reasons = lines.map(({ err }) => err?.message).filter((reason) => reason?.startsWith('WRONGPASS'));
    expect(reasons).to.deep.equal(['WRONGPASS first', 'WRONGPASS second']);
    expect(lines[0]?.msg).to.equal('Redis responds: WRONGPASS first: counting locally');
  });
});

/** The response to a command, such as `+OK`; undefined closes the connection. */
type Reply = (command: string) => string | undefined;

/** A server on which commands are answered like this. @param greeting is sent on each connection, which is then closed. */
function speaking(reply: Reply, greeting?: string): Server {
  return createServer((socket) => {
    socket.on('error', () => undefined);
    if (greeting !== undefined) socket.end(`${greeting}\r\n`);
    socket.on('data', (data) => {
      for (const [, command = ''] of String(data).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) {
        const text = reply(command.toUpperCase());
        if (text === undefined) socket.end();
        else if (!socket.writableEnded) socket.write(`${text}\r\n`);
      }
    });
  });
}

/** Connects to a server. @param address of it, with `PORT`. */
async function withServer<T>(
  server: Server,
  address: string,
  use: (redis: Redis, lines: { msg: string }[], url: string) => Promise<T>,
): Promise<T> {
  const { port, close } = await listen(server);
  const lines: { msg: string }[] = [];
  const write = (line: string) => lines.push(JSON.parse(line) as { msg: string });
  const log = createLogger('info', { destination: { write } });
  const url = address.replace('PORT', String(port));
  const redis = await createRedis(url, log, 'counting locally', 2000);
  try {
    return await use(redis, lines, url);
  } finally {
    redis.disconnect();
    await close();
  }
}

describe('A proxy of Redis', () => {
  const closes: Reply = (command) => (command === 'HELLO' ? undefined : '+OK');
  const refuses: Reply = (command) => (command === 'HELLO' ? '-ERR unsupported command' : '+OK');
  const knowsLittle: Reply = (command) =>
    ['SET', 'AUTH', 'SELECT'].includes(command) ? '+OK' : `-ERR unsupported command '${command}'`;
  for (const [what, reply] of Object.entries({ closes, refuses, knowsLittle })) {
    it(`is used with RESP2 if it does not support HELLO: ${what}`, async () => {
      for (const address of [
        'redis://127.0.0.1:PORT',
        'redis://:change-me@127.0.0.1:PORT',
        'redis://127.0.0.1:PORT/2',
      ]) {
        await withServer(speaking(reply), address, async (redis, lines, url) => {
          expect(await redis.set('key', 1), address).to.equal('OK');
          await checkRedis(url, 'registry');
          expect(lines, address).to.deep.equal([]);
        });
      }
    });
  }
});

describe('A Redis that refuses', () => {
  const failing = (commands: string[], text: string): Server =>
    speaking((command) => (commands.includes(command) ? text : '+OK'));
  const ok: Reply = () => '+OK';
  const refusals: [what: string, server: () => Server, described: string][] = [
    [
      'connections beyond maxclients',
      () => speaking(ok, '-ERR max number of clients reached'),
      'Redis responds: ERR max number of clients reached',
    ],
    [
      'clients of other hosts',
      () => speaking(ok, '-DENIED Redis is running in protected mode because protected mode is enabled'),
      'Redis responds: DENIED Redis is running in protected mode because protected mode is enabled',
    ],
    [
      'everything without its master',
      () =>
        speaking(() => "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
      "Redis responds: MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    ],
    [
      'a command of the user',
      () => failing(['EVAL'], "-NOPERM this user has no permissions to run the 'eval' command"),
      "Redis responds: NOPERM this user has no permissions to run the 'eval' command",
    ],
    [
      'keys of the user',
      () =>
        failing(['EVAL'], '-NOPERM this user has no permissions to access one of the keys used as arguments'),
      'Redis responds: NOPERM this user has no permissions to access one of the keys used as arguments',
    ],
    [
      'a renamed EVAL',
      () => failing(['EVAL'], "-ERR unknown command 'eval'"),
      "Redis responds: ERR unknown command 'eval'",
    ],
  ];
  for (const [what, server, described] of refusals) {
    it(`is described by the reason: ${what}`, async () => {
      await withServer(server(), 'redis://127.0.0.1:PORT', async (redis, lines, url) => {
        const limit = new RateLimiterRedis({ storeClient: redis, points: 1, duration: 1 });
        const reason = async () => {
          const error = await limit.consume('client', 0).catch((error: unknown) => error);
          return describeRedisError(error, redis);
        };
        await waitFor(async () => (await reason()) === described, described);
        if (!/eval|keys/.test(described)) await rejects(checkRedis(url, 'registry'), { message: described });
        await waitFor(() => redis.status !== 'connecting', 'an attempt');
        const logged = lines.map(({ msg }) => msg);
        expect(logged.filter((msg) => msg !== `${described}: counting locally`)).to.deep.equal([]);
        expect(logged.length).to.be.at.most(1);
      });
    });
  }
});
