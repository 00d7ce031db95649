import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import { integer } from '../../fixtures/random.js';
import { getRequest, RawConnection } from '../../support/raw-connection.js';
import { BYPASS_SECRET, RATE_LIMIT, type Stack } from '../stack.js';
import { fault, type Fault } from './fault.js';

/** How long useless clients stay, in milliseconds. */
const STAY_MS = 6000;

/** Requests that a flooding client sends beyond its limit. */
const EXCESS = 300;

/** Addresses of hostile clients: `127.0.2.*` and upwards, one for each injection. */
let addresses = 0;

function newAddress(): string {
  addresses++;
  return `127.0.${2 + (addresses >> 8)}.${addresses & 255}`;
}

/** Sends requests from one address through the proxy. @returns the number of responses with each status. */
async function requestFrom(
  { proxy }: Stack,
  address: string,
  paths: readonly string[],
): Promise<Map<number, number>> {
  const pool = new Pool(proxy.url, { connections: 8, localAddress: address });
  const statuses = new Map<number, number>();
  const left = [...paths];
  const send = async () => {
    for (let path = left.pop(); path !== undefined; path = left.pop()) {
      const { statusCode, body } = await pool.request({ method: 'GET', path });
      await body.dump();
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 8 }, send)).finally(() => pool.close());
  return statuses;
}

/** Sends more requests than one client may. @returns how many were not limited. */
export async function flood(stack: Stack): Promise<number> {
  const paths = Array<string>(RATE_LIMIT + EXCESS).fill('/stats');
  return (await requestFrom(stack, newAddress(), paths)).get(200) ?? 0;
}

/** Opens connections to a replica, lets them stay for a while, and closes them. */
async function occupy(url: string, count: number, bytes: string): Promise<void> {
  const connections: RawConnection[] = [];
  try {
    for (let i = 0; i < count; i++) {
      const connection = await RawConnection.openUnread(url);
      connections.push(connection);
      if (bytes !== '') connection.send(bytes);
    }
    await pause(STAY_MS);
  } finally {
    for (const connection of connections) connection.destroy();
  }
}

export const clientFaults: Fault[] = [
  fault('responses never read', ['requests pipelined, responses never read ¹'], (stack) =>
    occupy(stack.proxy.url, 40, getRequest('/search?q=lib&limit=500').repeat(100)),
  ),
  fault('malformed requests', ['malformed requests, bodies without a length'], async (stack) => {
    for (const { url } of stack.replicas) {
      for (let i = 0; i < 10; i++) {
        const connection = await RawConnection.open(url);
        const malformed = `${String.fromCharCode(integer(stack.random, 0, 31))} / HTTP\r\n\r\n`;
        connection.send(malformed);
        await connection.closed;
        const statuses = connection.responses.map(({ status }) => status).join();
        if (statuses !== '400') throw new Error(`expected 400, not ${statuses}`);
      }
    }
  }),
  fault('flood of one client', ['a flood of one client through two replicas'], async (stack) => {
    const passed = await flood(stack);
    if (passed !== RATE_LIMIT) throw new Error(`${passed} requests passed a limit of ${RATE_LIMIT}`);
  }),
  fault('wrong secrets', ['ten wrong secrets from one address'], async (stack) => {
    const address = newAddress();
    await requestFrom(stack, address, Array<string>(10).fill('/get-bypass?secret=wrong'));
    const right = [`/get-bypass?secret=${BYPASS_SECRET}`, '/rebuild?secret=wrong'];
    const refused = (await requestFrom(stack, address, right)).get(429);
    if (refused !== 2) throw new Error(`${refused ?? 0} of 2 requests were refused`);
  }),
];
