import * as z from 'zod';

/** The steps of a rebuild, in their order. */
export const PHASES = [
  'downloading',
  'checking',
  'creating',
  'loading',
  'merging',
  'verifying',
  'comparing',
  'replicating',
  'flipping',
  'pruning',
] as const;

export type Phase = (typeof PHASES)[number];

const COUNTING: readonly Phase[] = ['checking', 'loading', 'comparing'];

const count = z.int().nonnegative();

export const progressReport = z.object({
  phase: z.enum(PHASES),
  /** Rows read or written so far in this phase. A phase that counts no rows keeps the number of the phase before it. */
  rows: count,
  /** Expected number of rows, once that is known. */
  total: count.optional(),
  /** Bytes received (`downloading`), merged (`merging`) or copied (`comparing`, `replicating`) so far. */
  bytes: count.optional(),
  /** Expected number of bytes, roughly; unknown for a download. */
  totalBytes: count.optional(),
  /** ISO 8601. */
  startedAt: z.iso.datetime(),
});

export type ProgressReport = z.infer<typeof progressReport>;

export class Progress {
  #report: ProgressReport;

  constructor(
    startedAt: Date,
    private readonly listener: (report: ProgressReport) => void = () => undefined,
  ) {
    this.#report = { phase: 'downloading', rows: 0, total: undefined, startedAt: startedAt.toISOString() };
  }

  get report(): ProgressReport {
    return this.#report;
  }

  enter(phase: Phase, total?: number): void {
    const rows = COUNTING.includes(phase) ? 0 : this.#report.rows;
    const { startedAt } = this.#report;
    this.#report = { phase, rows, total: total ?? this.#report.total, startedAt };
    this.listener(this.#report);
  }

  change(part: Partial<Pick<ProgressReport, 'rows' | 'bytes' | 'totalBytes'>>): void {
    this.#report = { ...this.#report, ...part };
    this.listener(this.#report);
  }
}
