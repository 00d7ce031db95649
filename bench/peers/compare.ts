import { mean, median, percentile } from '../../test/fixtures/statistics.js';
import { LIMIT } from '../load.js';
import { throughput } from '../measure.js';
import { CONNECTIONS, type Peer } from './peer.js';

/** Another limit for which results must be equal. */
export const SMALL_LIMIT = 20;

export interface Queries {
  usual: readonly string[];
  /** Those of `hardQueries`. */
  hard: readonly string[];
}

/** How long to measure; durations in seconds. */
export interface Effort {
  rounds: number;
  /** Of each engine before the first round, for just-in-time compilation. */
  warmUp: number;
  busyRounds: number;
  busy: number;
}

/** One round of a peer, in milliseconds, one query after the other. */
interface Round {
  usual: number[];
  hard: number[];
  /** Processor time per usual query, by clock. */
  processor: number[];
}

/** The same with many searches in flight. */
interface BusyRound {
  perSecond: number;
  p99: number;
}

/** @throws {Error} unless all peers return the same results. */
export async function checkEqual([service, ...others]: Peer[], { usual, hard }: Queries): Promise<void> {
  const queries = [...usual, ...hard];
  for (const q of queries) {
    for (const limit of [LIMIT, SMALL_LIMIT]) {
      const expected = await resultsOf(service as Peer, q, limit);
      for (const peer of others) {
        if ((await resultsOf(peer, q, limit)) !== expected)
          throw new Error(`${peer.name} returns different results for ${JSON.stringify(q)}, limit ${limit}`);
      }
    }
  }
  console.log(`  ok    ${queries.length} queries return the same results on all engines`);
}

/** Without the white space between entries. */
async function resultsOf(peer: Peer, q: string, limit: number): Promise<string> {
  return JSON.stringify(JSON.parse(await peer.search(q, limit)));
}

/** Measures all peers in turns. @returns a row of figures for each. */
export async function compare(peers: Peer[], queries: Queries, effort: Effort) {
  const all = [...queries.usual, ...queries.hard];
  for (const peer of peers) await throughput(all, (q) => peer.search(q, LIMIT), 1, effort.warmUp);
  const rounds = await inTurns(peers, effort.rounds, (peer) => runRound(peer, queries));
  const busy = await inTurns(peers, effort.busyRounds, (peer) => runBusy(peer, queries.usual, effort.busy));
  return Promise.all(peers.map((peer, i) => figuresOf(peer, rounds[i] ?? [], busy[i] ?? [])));
}

/** @returns the rounds of each peer. */
async function inTurns<T>(peers: Peer[], rounds: number, run: (peer: Peer) => Promise<T>): Promise<T[][]> {
  const results = peers.map((): T[] => []);
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < peers.length; turn++) {
      const peer = (round + turn) % peers.length;
      results[peer]?.push(await run(peers[peer] as Peer));
    }
  }
  return results;
}

async function runRound(peer: Peer, { usual, hard }: Queries): Promise<Round> {
  const before = await read(peer);
  const usualTimes = await timesOf(peer, usual);
  const processor = (await read(peer)).map((time, i) => (time - (before[i] ?? NaN)) / usual.length);
  return { usual: usualTimes, hard: await timesOf(peer, hard), processor };
}

function read({ clocks }: Peer): Promise<number[]> {
  return Promise.all(clocks.map((clock) => clock()));
}

async function timesOf(peer: Peer, queries: readonly string[]): Promise<number[]> {
  const times: number[] = [];
  for (const q of queries) times.push(await timeOf(peer, q));
  return times;
}

async function timeOf(peer: Peer, q: string): Promise<number> {
  const began = performance.now();
  await peer.search(q, LIMIT);
  return performance.now() - began;
}

async function runBusy(peer: Peer, queries: readonly string[], seconds: number): Promise<BusyRound> {
  const times: number[] = [];
  const search = async (q: string) => times.push(await timeOf(peer, q));
  return { perSecond: await throughput(queries, search, CONNECTIONS, seconds), p99: percentile(times, 0.99) };
}

/** Medians over the rounds. */
async function figuresOf(peer: Peer, rounds: Round[], busy: BusyRound[]) {
  const over = (statistic: (round: Round) => number) => rounded(median(rounds.map(statistic)));
  return {
    name: peer.name,
    'mean, ms': over(({ usual }) => mean(usual)),
    'p50, ms': over(({ usual }) => median(usual)),
    'p99, ms': over(({ usual }) => percentile(usual, 0.99)),
    'worst, ms': over(({ usual }) => Math.max(...usual)),
    'hard: p50, ms': over(({ hard }) => median(hard)),
    'hard: worst, ms': over(({ hard }) => Math.max(...hard)),
    'processor: server, engine, ms': peer.clocks
      .map((_, i) => over(({ processor }) => processor[i] ?? NaN))
      .join('; '),
    [`searches/s, ${CONNECTIONS} in flight`]: rounded(median(busy.map(({ perSecond }) => perSecond))),
    'their p99, ms': rounded(median(busy.map(({ p99 }) => p99))),
    'on disk, MB': peer.bytes && Math.round((await peer.bytes()) / 1e6),
    'load, s': peer.loadSeconds && Math.round(peer.loadSeconds),
  };
}

function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
