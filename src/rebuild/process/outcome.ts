import * as z from 'zod';
import type { SkippedRows } from '../../lists/fetch/dataset-error.js';
import { MAX_REASON_LENGTH, truncateReason } from '../../util/reason-text.js';
import { createRedactor } from '../../util/redact.js';
import { FAILURE_KINDS, failureKind, reasonOf } from './failure-reason.js';

export const failure = z.object({
  /** ISO 8601. */
  at: z.iso.datetime(),
  reason: z.string().max(MAX_REASON_LENGTH),
  /** For metrics. */
  kind: z.enum(FAILURE_KINDS),
});

export type Failure = z.infer<typeof failure>;

/** A rebuild that succeeded. `index` is undefined if there was nothing to build. */
export interface Built {
  index: string | undefined;
  skipped?: SkippedRows | undefined;
  /** Warns the operator that no package has a name from `WEIGHTS_URL`. */
  warning?: string | undefined;
}

export interface Failed {
  failure: Failure;
}

export type Outcome = Built | { stopped: true } | Failed;

/** @param secrets are redacted before the reason is stored or sent anywhere. */
export function failed(error: Error, secrets: readonly string[]): Failed {
  const reason = truncateReason(createRedactor(secrets)(reasonOf(error)));
  return { failure: { at: new Date().toISOString(), reason, kind: failureKind(error) } };
}
