import { setTimeout as pause } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { repeat } from './repeat.js';

/** Requests in flight, each on its own keep-alive connection. */
const CONNECTIONS = 8;
/** Pause before each request, so that what is tested gets most of the processor, in milliseconds. */
const PAUSE_MS = 30;
/** A request that takes longer has failed, in milliseconds. */
const TIMEOUT_MS = 10_000;
const PATHS = ['/search?q=lib&limit=5', '/browse?page=7&limit=5', '/stats', '/health', '/ping'];

/**
 * Sends about 200 requests per second to one address.
 * @returns a function that stops, and returns the number of requests and the responses other than 200.
 */
export function startLoad(url: string): () => Promise<{ requests: number; failures: string[] }> {
  const dispatcher = new Agent({
    connections: CONNECTIONS,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  });
  const failures: string[] = [];
  let requests = 0;
  const stop = repeat(CONNECTIONS, async () => {
    await pause(PAUSE_MS);
    const path = PATHS[requests++ % PATHS.length];
    try {
      const { statusCode, body } = await request(`${url}${path}`, { dispatcher });
      const text = await body.text();
      if (statusCode !== 200) failures.push(`${path}: ${statusCode} ${text.slice(0, 200)}`);
    } catch (error) {
      failures.push(`${path}: ${(error as Error).message}`);
    }
  });
  return async () => {
    await stop();
    await dispatcher.close();
    return { requests, failures };
  };
}
