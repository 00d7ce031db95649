import { setTimeout as pause } from 'node:timers/promises';
import type { Contestant } from './measure.js';

/** How often due requests are sent, in milliseconds: the resolution of the timers. */
const TICK_MS = 1;

/**
 * Latencies at a constant arrival rate, in milliseconds. A request is sent when it is due, even if earlier
 * ones are still in flight, and its latency is measured from then. So a stalled server is charged for all
 * requests that queue up, which a client that waits for each response hides (coordinated omission).
 */
export async function openLoop<T>(
  items: readonly T[],
  contestant: Contestant<T>,
  requestsPerSecond: number,
  seconds: number,
): Promise<number[]> {
  const latencies: number[] = [];
  const responses: Promise<void>[] = [];
  const interval = 1000 / requestsPerSecond;
  const total = Math.floor(requestsPerSecond * seconds);
  const began = performance.now();
  while (responses.length < total) {
    const due = Math.min(total, Math.floor((performance.now() - began) / interval));
    while (responses.length < due) {
      const dueAt = began + responses.length * interval;
      const response = contestant(items[responses.length % items.length] as T);
      responses.push(response.then(() => void latencies.push(performance.now() - dueAt)));
    }
    await pause(TICK_MS);
  }
  await Promise.all(responses);
  return latencies;
}
