import type { ServerProcess } from '../processes.js';
import { codePoints } from '../../src/util/unicode.js';
import { lowerCase } from '../../test/fixtures/search-oracle.js';
import { BaselineClient } from '../measure.js';

/** A search engine with the same names as the service. */
export interface Peer {
  name: string;
  /** The body of `/search`: the same packages in the same order. */
  search: (q: string, limit: number) => Promise<string>;
  /** Processor time used so far by its server, and by the engine behind it, in milliseconds. */
  clocks: (() => Promise<number>)[];
  /** Size of the names and their indices on disk, in bytes. */
  bytes?: () => Promise<number>;
  /** Time to load the names, in seconds. */
  loadSeconds?: number;
  stop: () => Promise<void>;
}

/** Maximum number of requests in flight. */
export const CONNECTIONS = 32;

/** A peer that is searched over HTTP, by the same client. It stops its server. */
export function overHttp(name: string, server: ServerProcess, clocks = [clockOf(server)]): Peer {
  const client = new BaselineClient(server.url, CONNECTIONS);
  return {
    name,
    search: (q, limit) => client.get(pathOf(q, limit)),
    clocks,
    stop: async () => {
      await client.close();
      await server.stop();
    },
  };
}

export function pathOf(q: string, limit: number): string {
  return `/search?limit=${limit}&q=${encodeURIComponent(q)}`;
}

export function clockOf(server: ServerProcess): () => Promise<number> {
  return async () => (await server.cpuSeconds()) * 1000;
}

/** A name as databases store it. They number names in name order. */
export interface Row {
  no: number;
  name: string;
  /** The name in lower case: databases compare it by code point. */
  lower: string;
  /** Its entry as JSON, without braces. */
  entry: string;
}

/**
 * The search of databases has the two tiers of the service. Names that start with the query have adjacent numbers.
 * They include the exact ones, which come first.
 */
export interface Starting {
  id: number;
  entry: string;
  isExact: boolean | number;
}

/** The second tier: names with all `grams` that contain `lower`, except those numbered from `first` to `last`. */
export interface Elsewhere {
  lower: string;
  grams: string[];
  first: number;
  last: number;
  limit: number;
}

/** @returns undefined if the first tier fills the response. */
export function elsewhere(q: string, starting: readonly Starting[], limit: number): Elsewhere | undefined {
  if (starting.length === limit) return undefined;
  const lower = lowerCase(q);
  const [first, last] = [starting[0]?.id ?? 0, starting.at(-1)?.id ?? 0];
  return { lower, grams: gramsOf(lower), first, last, limit: limit - starting.length };
}

/** Two or three adjacent characters from each end of a text and beside them: more grams take longer to intersect. */
function gramsOf(lower: string): string[] {
  const characters = codePoints(lower);
  const last = Math.max(0, characters.length - 3);
  const starts = [0, 3, last - 3, last].filter((start) => start >= 0 && start <= last);
  return [...new Set(starts.map((start) => characters.slice(start, start + 3).join('')))];
}

export function bodyOf(
  q: string,
  starting: readonly Starting[],
  others: readonly { entry: string }[],
): string {
  const results = starting.map(({ entry, isExact }) => `{${entry},"rank":${isExact ? 0 : 1}}`);
  for (const { entry } of others) results.push(`{${entry},"rank":2}`);
  return `{"query":${JSON.stringify(q)},"count":${results.length},"results":[${results.join(',')}]}`;
}
