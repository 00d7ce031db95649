import { Pool, type Dispatcher } from 'undici';
import { median } from '../test/fixtures/statistics.js';

/** Processes an item. */
export type Contestant<T> = (item: T) => Promise<unknown>;

/** Two implementations that process the same items. */
export type Contestants<T> = readonly [Contestant<T>, Contestant<T>];

/** A time for each item in milliseconds, in the order of the items, by each of two contestants. */
export type Round = [number[], number[]];

export type Statistic = (times: readonly number[]) => number;

/** Times two contestants for each item, `rounds` times after a warm-up round. */
export async function interleaveRounds<T>(
  items: readonly T[],
  contestants: Contestants<T>,
  rounds: number,
): Promise<Round[]> {
  await interleave(items, contestants);
  const measured: Round[] = [];
  for (let round = 0; round < rounds; round++) measured.push(await interleave(items, contestants));
  return measured;
}

/** A statistic of the first contestant ÷ that of the second one: median over rounds. */
export function medianRatio(rounds: readonly Round[], statistic: Statistic): number {
  return median(rounds.map(([first, second]) => statistic(first) / statistic(second)));
}

/** Times two contestants for each item; they take turns at going first. */
async function interleave<T>(items: readonly T[], contestants: Contestants<T>): Promise<Round> {
  const times: Round = [[], []];
  for (const [i, item] of items.entries()) {
    for (const which of i % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const began = performance.now();
      await contestants[which](item);
      times[which].push(performance.now() - began);
    }
  }
  return times;
}

/** Items per second that a contestant processes, with `connections` items in flight. */
export async function throughput<T>(
  items: readonly T[],
  contestant: Contestant<T>,
  connections: number,
  seconds: number,
): Promise<number> {
  const began = performance.now();
  const end = began + seconds * 1000;
  let next = 0;
  let done = 0;
  const worker = async () => {
    while (performance.now() < end) {
      await contestant(items[next++ % items.length] as T);
      done++;
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  return done / ((performance.now() - began) / 1000);
}

interface GetOptions {
  headers?: Record<string, string>;
  status?: number;
}

/** A bare HTTP client with a fixed number of connections, which returns the text of responses. */
export class BaselineClient {
  readonly #pool: Pool;

  constructor(origin: string, connections: number) {
    this.#pool = new Pool(origin, { connections });
  }

  /** @param status expected status; any other one is an error. */
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
    throw new Error(`${request.path} returned ${statusCode}: ${text.slice(0, 300)}`);
  }
}
