import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import { getRequest, RawConnection } from '../../support/raw-connection.js';
import { RATE_LIMIT, type Stack } from '../stack.js';
import { fault, type Fault } from './fault.js';

/** Connections whose responses are never read, and how long they stay, in milliseconds. */
const UNREAD = 40;
const STAY_MS = 6000;

/** Requests that a flooding client sends beyond its limit. */
const EXCESS = 300;
const CONNECTIONS = 8;

/** Addresses of hostile clients: `127.0.2.*` and upwards, one for each injection. */
let addresses = 0;

function newAddress(): string {
  addresses++;
  return `127.0.${2 + (addresses >> 8)}.${addresses & 255}`;
}

/** Sends more requests from one address than one client may. @returns how many were not limited. */
export async function flood({ proxy }: Stack): Promise<number> {
  const pool = new Pool(proxy.url, { connections: CONNECTIONS, localAddress: newAddress() });
  let left = RATE_LIMIT + EXCESS;
  let passed = 0;
  const send = async () => {
    while (left-- > 0) {
      const { statusCode, body } = await pool.request({ method: 'GET', path: '/stats' });
      await body.dump();
      if (statusCode === 200) passed++;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, send)).finally(() => pool.close());
  return passed;
}

/** Opens connections to the proxy, sends requests through each, and closes them later without a look at the responses. */
async function leaveUnread({ proxy }: Stack): Promise<void> {
  const connections: RawConnection[] = [];
  try {
    for (let i = 0; i < UNREAD; i++) {
      const connection = await RawConnection.openUnread(proxy.url);
      connections.push(connection);
      connection.send(getRequest('/search?q=lib&limit=500').repeat(100));
    }
    await pause(STAY_MS);
  } finally {
    for (const connection of connections) connection.destroy();
  }
}

export const clientFaults: Fault[] = [
  fault('responses never read', leaveUnread),
  fault('flood of one client', async (stack) => {
    const passed = await flood(stack);
    if (passed !== RATE_LIMIT) throw new Error(`${passed} requests passed a limit of ${RATE_LIMIT}`);
  }),
];
