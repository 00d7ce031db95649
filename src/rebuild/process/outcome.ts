import * as z from 'zod';
import type { SkippedRows } from '../../lists/dataset-error.js';
import { MAX_REASON_LENGTH } from '../../util/reason-text.js';
import { detailsOf, FAILURE_KINDS, failureKind, publicReason } from './failure-reason.js';

/** Why a rebuild failed. */
export const failure = z.object({
  /** ISO 8601. */
  at: z.iso.datetime(),
  reason: z.string().max(MAX_REASON_LENGTH),
  /** For metrics. Undefined in a failure that an earlier release stored. */
  kind: z.enum(FAILURE_KINDS).optional(),
});

export type Failure = z.infer<typeof failure>;

/** A rebuild that succeeded. `index` is undefined if there was nothing to build. */
export interface Built {
  index: string | undefined;
  skipped?: SkippedRows | undefined;
  /** Warns the operator that no package has a name from `WEIGHTS_URL`. */
  warning?: string | undefined;
}

/** How a rebuild ended. */
export type Outcome = Built | { stopped: true } | Failed;

/** A rebuild that failed. */
export interface Failed {
  /** For clients. */
  failure: Failure;
  /** One line, for operators only. It may contain addresses. */
  details: string;
}

/** The outcome of a rebuild that failed just now. */
export function failed(error: Error): Failed {
  return {
    failure: { at: new Date().toISOString(), reason: publicReason(error), kind: failureKind(error) },
    details: detailsOf(error),
  };
}
