import type { SkippedRows } from '../../lists/dataset-error.js';
import { detailsOf, failureKind, publicReason, type FailureKind } from './failure-reason.js';

/** Why a rebuild failed. */
export interface Failure {
  /** ISO 8601. */
  at: string;
  reason: string;
  /** For metrics. Undefined in a failure that an earlier release stored. */
  kind?: FailureKind | undefined;
}

/** A rebuild that succeeded: its index, undefined if there was nothing to build. */
export interface Built {
  index: string | undefined;
  skipped?: SkippedRows | undefined;
  /** Warns the operator of something that is probably not intended. */
  warning?: string | undefined;
}

/** How a rebuild ended. */
export type Outcome = Built | { stopped: true } | Failed;

/** A rebuild that failed. */
export interface Failed {
  /** For clients. */
  failure: Failure;
  /** For operators only, in one line: may contain addresses. */
  details: string;
}

/** A rebuild that failed just now. */
export function failed(error: Error): Failed {
  return {
    failure: { at: new Date().toISOString(), reason: publicReason(error), kind: failureKind(error) },
    details: detailsOf(error),
  };
}
