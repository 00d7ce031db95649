import autocannon from 'autocannon';
import { Pool, type Dispatcher } from 'undici';

/** A way to get something done, and its name. */
export type Contestant<T> = (item: T) => Promise<unknown>;

/** How long two ways take for each item, in milliseconds: in turn, the first one being another each time. */
export async function interleave<T>(
  items: readonly T[],
  ways: readonly [Contestant<T>, Contestant<T>],
): Promise<[number[], number[]]> {
  const times: [number[], number[]] = [[], []];
  for (const [i, item] of items.entries()) {
    for (const way of i % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const began = performance.now();
      await ways[way](item);
      times[way].push(performance.now() - began);
    }
  }
  return times;
}

/** How many items a second a way gets through, with `connections` of them under way at a time. */
export async function throughput<T>(
  items: readonly T[],
  way: Contestant<T>,
  connections: number,
  seconds: number,
): Promise<number> {
  const began = performance.now();
  const end = began + seconds * 1000;
  let next = 0;
  let done = 0;
  const worker = async () => {
    while (performance.now() < end) {
      await way(items[next++ % items.length] as T);
      done++;
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  return done / ((performance.now() - began) / 1000);
}

/** Requests a second to one address, every answer being `status`. */
export async function requestsPerSecond(
  url: string,
  status: number,
  seconds: number,
  headers: Record<string, string> = {},
): Promise<number> {
  const result = await autocannon({ url, headers, connections: 16, duration: seconds });
  const { statusCodeStats, errors, timeouts } = result as typeof result & {
    statusCodeStats: Record<string, { count: number }>;
  };
  const others = Object.keys(statusCodeStats).filter((code) => code !== String(status));
  if (others.length > 0 || errors > 0 || timeouts > 0) {
    throw new Error(`${url} answered ${others.join(', ')}; ${errors} errors, ${timeouts} time-outs`);
  }
  return result.requests.average;
}

interface GetOptions {
  headers?: Record<string, string>;
  status?: number;
}

/** A bare client: as many connections as asked for, and the text of the answer. */
export class BaselineClient {
  readonly #pool: Pool;

  constructor(origin: string, connections: number) {
    this.#pool = new Pool(origin, { connections });
  }

  /** @param status that is expected. */
  get(path: string, { headers = {}, status = 200 }: GetOptions = {}): Promise<string> {
    return this.#send({ method: 'GET', path, headers }, status);
  }

  post(path: string, body: string): Promise<string> {
    return this.#send({ method: 'POST', path, body, headers: { 'content-type': 'application/x-ndjson' } });
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  async #send(request: Dispatcher.RequestOptions, status = 200): Promise<string> {
    const { statusCode, body } = await this.#pool.request(request);
    const text = await body.text();
    if (statusCode === status) return text;
    throw new Error(`${request.path} was answered ${statusCode}: ${text.slice(0, 300)}`);
  }
}
