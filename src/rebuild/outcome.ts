import { publicReason } from './failure-reason.js';

/** Why a rebuild failed. */
export interface Failure {
  /** ISO 8601. */
  at: string;
  reason: string;
}

/** How a rebuild ended: with a new index, with nothing to do (undefined), stopped, or failed. */
export type Outcome = { index: string | undefined } | { stopped: true } | { failure: Failure };

/** A rebuild that failed just now. */
export function failed(error: Error): { failure: Failure } {
  return { failure: { at: new Date().toISOString(), reason: publicReason(error) } };
}
