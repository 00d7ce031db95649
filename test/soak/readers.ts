import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import { isUnavailable, type Read, type ReadResponse } from './reads.js';
import type { Snapshots } from './snapshots.js';

/** Clients with an address each, so that every one has a rate limit of its own. */
const CLIENTS = 40;
const CONNECTIONS_PER_CLIENT = 32;

/** Interval at which requests are sent, in milliseconds. */
const TICK_MS = 2;

/**
 * Time in which the rate grows from nothing, in seconds: three nodes have just started and are still compiling. On two
 * processors, 40 seconds were too short: searches waited for longer than their timeouts.
 */
export const RAMP_SECONDS = 120;

/**
 * Requests in flight at most. A suspended replica holds the requests that reached it until it resumes: at 300 a
 * second, a third of them in the two seconds that HAProxy needs to notice.
 */
const MAX_IN_FLIGHT = 2000;

/** A read fails without a complete response after this time, in milliseconds: that of the proxy. */
const TIMEOUT_MS = 30_000;

/** Failures and wrong responses that are kept and printed. */
const KEPT = 50;

/** Latencies of one endpoint in milliseconds. */
interface Latencies {
  calm: number[];
  faults: number[];
}

/** Endpoints that ask Elasticsearch for each response that is not cached. */
const SEARCHING = /^\/(search|similar|browse|lookup|packages)\b/;

/** Searches that were sent while a fault lasted, and those of them that got the documented 503. */
interface Searches {
  sent: number;
  unavailable: number;
}

/** When a read is due, in seconds. @param rate reads a second after the ramp. */
function dueAt(read: number, rate: number): number {
  const inRamp = (rate * RAMP_SECONDS) / 2;
  return read < inRamp ? Math.sqrt((2 * RAMP_SECONDS * read) / rate) : RAMP_SECONDS / 2 + read / rate;
}

/** Reads the service at a constant rate, whatever its latency, and verifies every response. */
export class Readers {
  sent = 0;
  failed = 0;
  wrong = 0;
  /** By the fault. */
  readonly searches = new Map<string, Searches>();
  readonly latencies = new Map<string, Latencies>();
  /** The first failures and wrong responses. */
  readonly incidents: string[] = [];
  readonly #pools: Pool[];
  #inFlight = 0;
  #isOver = false;
  #done: Promise<unknown> | undefined;

  /** @param fault the one in progress; called when a request is sent and when its response arrives. */
  constructor(
    url: string,
    private readonly snapshots: Snapshots,
    private readonly next: () => Read,
    private readonly fault: () => string | undefined,
  ) {
    this.#pools = Array.from(
      { length: CLIENTS },
      (_, i) =>
        new Pool(url, {
          connections: CONNECTIONS_PER_CLIENT,
          localAddress: `127.0.1.${i + 1}`,
          headersTimeout: TIMEOUT_MS,
          bodyTimeout: TIMEOUT_MS,
        }),
    );
  }

  /** @param rate requests a second, after a time in which it grows from nothing. */
  start(rate: number): void {
    this.#done = this.#send(rate).then(() => Promise.all(this.#pools.map((pool) => pool.close())));
  }

  /** Stops sending, and waits until all responses are verified. May be called again. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  async #send(rate: number): Promise<void> {
    const began = performance.now();
    const reads = new Set<Promise<void>>();
    while (!this.#isOver) {
      for (;;) {
        const scheduled = began + 1000 * dueAt(this.sent, rate);
        if (scheduled > performance.now()) break;
        const pool = this.#pools[this.sent++ % CLIENTS] as Pool;
        const read = this.#read(pool, this.next(), scheduled);
        reads.add(read);
        void read.finally(() => reads.delete(read));
      }
      await pause(TICK_MS);
    }
    await Promise.all(reads);
  }

  async #read(pool: Pool, read: Read, scheduled: number): Promise<void> {
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      this.#fail(read, `not sent: ${MAX_IN_FLIGHT} requests are in flight`, this.fault());
      return;
    }
    const before = this.fault();
    this.#inFlight++;
    const response = await this.#request(pool, read)
      .catch((error: unknown) => error as Error)
      .finally(() => this.#inFlight--);
    const ms = performance.now() - scheduled;
    if (response instanceof Error) {
      const { message, cause } = response;
      const why = cause instanceof Error ? cause.message : '';
      this.#fail(read, `${message} ${why} after ${Math.round(ms)} ms`, before);
      return;
    }
    const { calm, faults } = this.#latenciesOf(read.endpoint);
    (before === undefined && this.fault() === undefined ? calm : faults).push(ms);
    const during = before ?? this.fault();
    if (during !== undefined && SEARCHING.test(read.endpoint)) {
      const searches = this.#searchesDuring(during);
      searches.sent++;
      if (isUnavailable(response)) {
        searches.unavailable++;
        return;
      }
    }
    await this.#judge(read, response, ms, before);
  }

  async #request(pool: Pool, { path, headers: sent = {} }: Read): Promise<ReadResponse> {
    const { statusCode, headers, body } = await pool.request({ method: 'GET', path, headers: sent });
    return {
      status: statusCode,
      snapshot: headers['x-snapshot'] as string | undefined,
      etag: headers['etag'] as string | undefined,
      requestId: headers['x-request-id'] as string | undefined,
      retryAfter: headers['retry-after'] as string | undefined,
      body: await body.text(),
    };
  }

  async #judge(read: Read, response: ReadResponse, ms: number, during: string | undefined): Promise<void> {
    const { status, snapshot, requestId, body } = response;
    if (!(read.statuses ?? [200]).includes(status)) {
      this.#fail(read, `${status} ${requestId} after ${Math.round(ms)} ms: ${body.slice(0, 200)}`, during);
      return;
    }
    let reason: string | undefined;
    try {
      const variant = snapshot === undefined ? undefined : await this.snapshots.variantOf(snapshot);
      reason = read.verify(response, variant);
    } catch (error) {
      reason = (error as Error).message;
    }
    if (reason === undefined) return;
    this.wrong++;
    this.#keep(
      `wrong response, ${during ?? 'calm'}: ${read.path}: ${status}, snapshot ${snapshot}: ${body.slice(0, 300)}; ${reason}`,
    );
  }

  #fail(read: Read, reason: string, during: string | undefined): void {
    this.failed++;
    this.#keep(`failed read, ${during ?? 'calm'}: ${read.path.slice(0, 100)}: ${reason}`);
  }

  /** Prints and keeps the first failures and wrong responses. */
  #keep(incident: string): void {
    if (this.incidents.length === KEPT) return;
    const line = `${new Date().toISOString()} ${incident}`;
    this.incidents.push(line);
    console.log(line);
  }

  #searchesDuring(fault: string): Searches {
    const found = this.searches.get(fault) ?? { sent: 0, unavailable: 0 };
    this.searches.set(fault, found);
    return found;
  }

  #latenciesOf(endpoint: string): Latencies {
    const found = this.latencies.get(endpoint) ?? { calm: [], faults: [] };
    this.latencies.set(endpoint, found);
    return found;
  }
}
