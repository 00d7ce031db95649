import type { Config } from '../config.js';
import type { Outcome } from './outcome.js';
import type { ProgressReport } from './progress.js';
import type { RebuildOptions } from './rebuild.js';

/** What the server and its worker process tell each other, over the IPC channel of Node. */

export type StartOptions = Pick<RebuildOptions, 'force' | 'skipIf'>;

/** Everything a worker needs. */
export interface WorkerInput {
  config: Config;
  options: StartOptions;
  startedAt: Date;
  logLevel: string;
  /** To be redacted in its log. */
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
  /** It has the lock, and begins. */
  | { type: 'started'; lockOwner: string }
  /** Another rebuild has the lock. */
  | { type: 'busy' }
  /** Redis does not respond, so that the lock can be neither acquired nor refused. */
  | { type: 'lock-unavailable' }
  /** Sent several times a second, also without progress: a sign of life. */
  | { type: 'progress'; report: ProgressReport; usage: ResourceUsage }
  /** It is about to create this index. */
  | { type: 'index'; index: string }
  /** It has cleaned up and released the lock. */
  | { type: 'ended'; outcome: Outcome };
