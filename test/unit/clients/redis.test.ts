import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect } from 'chai';
import { createRedis, RETRY_STEP_MS } from '../../../src/clients/redis.js';
import { createLogger } from '../../../src/log.js';
import { waitFor } from '../../support/wait-for.js';

/** Connects to a server that handles connections like this, until there have been several, and returns the log. */
async function logOf(handle: (socket: Socket, connection: number) => void) {
  let connections = 0;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    handle(socket, ++connections);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const lines: { msg: string; err?: { message: string } }[] = [];
  const write = (line: string) => lines.push(JSON.parse(line) as (typeof lines)[number]);
  const log = createLogger('info', false, { destination: { write } });
  const redis = await createRedis(`redis://u:change-me@127.0.0.1:${port}`, log, 'counting locally', 10);
  try {
    await waitFor(() => connections > 5, 'further attempts');
    return lines;
  } finally {
    redis.disconnect();
    server.close();
  }
}

describe('A Redis that does not respond', () => {
  it('is tried again after a tenth of a second at first', () => {
    expect(RETRY_STEP_MS).to.equal(100);
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
    expect(lines[0]?.msg).to.equal(
      'Redis does not accept the user or the password in REDIS_URL: counting locally',
    );
  });

  it('is logged if connections are closed without an error', async () => {
    const lines = await logOf((socket) => socket.on('data', () => socket.end()));
    expect(lines.map(({ err }) => err?.message)).to.deep.equal(['the connection is closed at once']);
  });
});
