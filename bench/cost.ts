import { BareClient } from './measure.js';
import { processorTime } from './processor-time.js';
import type { ServerProcess } from './processes.js';

const TURNS = 8;
/** Before the turns that count, so that the code is compiled. */
const WARM_UP_TURNS = 2;
const CONNECTIONS = 8;
const REQUESTS_PER_TURN = 2000;

interface BenchRequest {
  path: string;
  headers?: Record<string, string>;
}

/** The same request as often as a turn needs to be measured well. */
export function repeated(request: BenchRequest): BenchRequest[] {
  return Array<BenchRequest>(REQUESTS_PER_TURN).fill(request);
}

/** A server and what it is asked in each turn. */
export interface Contender {
  server: ServerProcess;
  requests: readonly BenchRequest[];
  /** Of every response; 200 by default. */
  status?: number;
}

/** Processor time per request, in milliseconds. */
export interface Cost {
  subject: number;
  baseline: number;
}

/**
 * Measures the processor time per request of two servers in turns. Of each the cheapest turn counts: other load on the
 * machine only ever adds.
 */
export async function costPerRequest(subject: Contender, baseline: Contender): Promise<Cost> {
  const sides = [subject, baseline].map(({ server, requests, status = 200 }) => {
    const client = new BareClient(server.url, CONNECTIONS);
    const run = async () => {
      const before = await processorTime(server.pid);
      const left = requests.values();
      const send = async () => {
        for (const { path, headers = {} } of left) await client.get(path, { headers, status });
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, send));
      return ((await processorTime(server.pid)) - before) / requests.length;
    };
    return { client, run, cheapest: Infinity };
  });
  for (let turn = -WARM_UP_TURNS; turn < TURNS; turn++) {
    for (const side of turn % 2 === 0 ? sides : sides.toReversed()) {
      const time = await side.run();
      if (turn >= 0) side.cheapest = Math.min(side.cheapest, time);
    }
  }
  for (const { client } of sides) await client.close();
  const [ours = NaN, floor = NaN] = sides.map(({ cheapest }) => cheapest);
  return { subject: ours, baseline: floor };
}
