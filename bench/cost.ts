import { BaselineClient } from './measure.js';
import { userTime } from './processor-time.js';
import type { ServerProcess } from './processes.js';

const TURNS = 12;
/** Sent before the first measured turn, so that the code is compiled. */
const WARM_UP_REQUESTS = 4000;
const CONNECTIONS = 8;
const REQUESTS_PER_TURN = 2000;

interface BenchRequest {
  path: string;
  headers?: Record<string, string>;
}

/** Repeats one request for a whole turn. */
export function repeated(request: BenchRequest): BenchRequest[] {
  return Array<BenchRequest>(REQUESTS_PER_TURN).fill(request);
}

/** A server and the requests of each turn. */
export interface Contender {
  server: ServerProcess;
  requests: readonly BenchRequest[];
  /** Expected of every response; 200 by default. */
  status?: number;
}

/** User time per request, in milliseconds. */
export interface Cost {
  subject: number;
  baseline: number;
}

/**
 * Sends the requests of a contender and reads clocks before and after.
 * @param clocks each returns the time used so far, in milliseconds.
 * @returns the time used per request, by clock.
 */
export async function timePerRequest<Name extends string>(
  { server, requests, status = 200 }: Contender,
  clocks: Record<Name, () => Promise<number>>,
): Promise<Record<Name, number>> {
  const client = new BaselineClient(server.url, CONNECTIONS);
  const read = () => Promise.all(Object.values<() => Promise<number>>(clocks).map((clock) => clock()));
  await sendAll(client, requests, status);
  const before = await read();
  for (let turn = 0; turn < TURNS; turn++) await sendAll(client, requests, status);
  const after = await read();
  await client.close();
  const used = Object.keys(clocks).map((name, i) => [
    name,
    ((after[i] as number) - (before[i] as number)) / (TURNS * requests.length),
  ]);
  return Object.fromEntries(used) as Record<Name, number>;
}

async function sendAll(
  client: BaselineClient,
  requests: readonly BenchRequest[],
  status: number,
): Promise<void> {
  const left = requests.values();
  const send = async () => {
    for (const { path, headers = {} } of left) await client.get(path, { headers, status });
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, send));
}

/** Measures the user time per request of two servers in turns. */
export async function costPerRequest(subject: Contender, baseline: Contender): Promise<Cost> {
  const sides = [subject, baseline].map(({ server, requests, status = 200 }) => {
    const client = new BaselineClient(server.url, CONNECTIONS);
    const run = async () => {
      const before = await userTime(server.pid);
      await sendAll(client, requests, status);
      return ((await userTime(server.pid)) - before) / requests.length;
    };
    return { client, run, total: 0 };
  });
  const warmUpTurns = Math.ceil(WARM_UP_REQUESTS / subject.requests.length);
  for (let turn = -warmUpTurns; turn < TURNS; turn++) {
    for (const side of turn % 2 === 0 ? sides : sides.toReversed()) {
      const time = await side.run();
      if (turn >= 0) side.total += time;
    }
  }
  for (const { client } of sides) await client.close();
  const [ours = NaN, other = NaN] = sides.map(({ total }) => total / TURNS);
  return { subject: ours, baseline: other };
}
