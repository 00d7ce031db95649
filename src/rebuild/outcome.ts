import type { SkippedRows } from './bad-rows.js';
import { publicReason } from './failure-reason.js';

/** Why a rebuild failed. */
export interface Failure {
  /** ISO 8601. */
  at: string;
  reason: string;
}

/** A rebuild that succeeded: its index, undefined if there was nothing to build. */
export interface Built {
  index: string | undefined;
  skipped?: SkippedRows | undefined;
}

/** How a rebuild ended. */
export type Outcome = Built | { stopped: true } | { failure: Failure };

/** A rebuild that failed just now. */
export function failed(error: Error): { failure: Failure } {
  return { failure: { at: new Date().toISOString(), reason: publicReason(error) } };
}
