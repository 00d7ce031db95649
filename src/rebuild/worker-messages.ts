import type { Config } from '../config.js';
import type { Outcome } from './outcome.js';
import type { ProgressReport } from './progress.js';
import type { RebuildOptions, SeenDataset } from './rebuild.js';

/** The messages between the server and its worker process, over the IPC channel of Node. */

export type StartOptions = Pick<RebuildOptions, 'force' | 'skipIf' | 'seen'>;

/** Everything a worker needs. */
export interface WorkerInput {
  config: Config;
  options: StartOptions;
  startedAt: Date;
  logLevel: string;
  /** Redacted in its log. */
  secrets: readonly string[];
}

export type MessageToWorker = { type: 'start'; input: WorkerInput } | { type: 'stop' };

/** Resources that a worker has used so far. */
export interface ResourceUsage {
  /** Resident memory, in bytes. */
  memoryBytes: number;
  /** Processor time, in seconds. */
  cpuSeconds: number;
}

export type MessageFromWorker =
  /** One line of JSON, with the newline. */
  | { type: 'log'; line: string }
  /** The worker holds the lock and begins. */
  | { type: 'started'; lockOwner: string }
  /** Another rebuild holds the lock. */
  | { type: 'busy' }
  /** The state of the lock is unknown. */
  | { type: 'lock-unavailable'; reason: string }
  /** A heartbeat, sent several times a second even without progress. */
  | { type: 'progress'; report: ProgressReport; usage: ResourceUsage }
  /** The dataset has not changed, whatever its validators say. */
  | { type: 'seen'; seen: SeenDataset }
  /** The worker is about to create this index. */
  | { type: 'index'; index: string }
  /** The worker has cleaned up and released the lock. */
  | { type: 'ended'; outcome: Outcome };
