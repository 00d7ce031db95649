import { mean, percentile } from '../fixtures/statistics.js';
import type { Readers } from './readers.js';

/** Resident memory of a replica at one time. */
export interface MemorySample {
  replica: string;
  /** Process id: after a restart, memory starts again from the beginning. */
  pid: number;
  /** Since the start of the readers. */
  minutes: number;
  megabytes: number;
}

/** One injection of a fault. */
export interface Injection {
  fault: string;
  /** Since the start of the readers. */
  minutes: number;
  seconds: number;
  /** What the service did not do as expected; empty if it did all of it. */
  failure: string;
  /** Whether everything worked again in time. */
  hasRecovered: boolean;
}

/** A point of the summary. */
export interface Point {
  point: string;
  goal: string;
  measured: string;
  isMet: boolean;
}

/** The p99 of each endpoint in milliseconds, calm and during faults, with the number of reads. */
export function latencyTable({ latencies }: Readers): Record<string, Record<string, number>> {
  const at = (times: readonly number[], share: number) => Number(percentile(times, share).toFixed(1));
  return Object.fromEntries(
    [...latencies]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([endpoint, { calm, faults }]) => [
        endpoint,
        {
          'calm: reads': calm.length,
          'calm: p50': at(calm, 0.5),
          'calm: p99': at(calm, 0.99),
          'faults: reads': faults.length,
          'faults: p50': at(faults, 0.5),
          'faults: p99': at(faults, 0.99),
        },
      ]),
  );
}

/**
 * How much the memory of each replica grew between two minutes, by their means, in megabytes; NaN if not the
 * same process was sampled in both.
 */
export function memoryGrowth(
  samples: readonly MemorySample[],
  before: number,
  after: number,
): { replica: string; megabytes: number }[] {
  const at = (replica: string, from: number) => {
    const found = samples.filter(
      (sample) => sample.replica === replica && sample.minutes >= from && sample.minutes < from + 1,
    );
    return {
      pids: new Set(found.map(({ pid }) => pid)),
      mean: mean(found.map(({ megabytes }) => megabytes)),
    };
  };
  return [...new Set(samples.map(({ replica }) => replica))].map((replica) => {
    const [old, current] = [at(replica, before), at(replica, after)];
    const isSame = new Set([...old.pids, ...current.pids]).size === 1;
    return { replica, megabytes: isSame ? current.mean - old.mean : NaN };
  });
}
