import { STEPS } from '../publish/publish.js';

/** The steps of a rebuild, in their order. */
export const PHASES = ['downloading', 'checking', ...STEPS, 'pruning'] as const;

export type Phase = (typeof PHASES)[number];

const COUNTING: readonly Phase[] = ['checking', 'loading', 'comparing'];

/** How far a rebuild is. Names and units are those of its state document. */
export interface Report {
  phase: Phase;
  /** Rows read or written so far in this phase. A phase that counts no rows keeps the number of the phase before it. */
  rows: number;
  /** Expected number of rows, once that is known. */
  total_rows: number | null;
  /** Bytes received (`downloading`), merged (`merging`) or copied (`comparing`, `replicating`) so far. */
  bytes: number | null;
  /** Expected number of bytes, roughly; null for a download. */
  total_bytes: number | null;
}

/** Follows a rebuild through its phases. */
export class Progress {
  #report: Report = { phase: 'downloading', rows: 0, total_rows: null, bytes: null, total_bytes: null };
  #phaseBegan = performance.now();
  readonly #seconds: Partial<Record<Phase, number>> = {};

  /** @param listener called with each change. */
  constructor(private readonly listener: (report: Report) => void = () => undefined) {}

  get report(): Report {
    return this.#report;
  }

  /** Time spent in each phase so far, in seconds. */
  get seconds(): Partial<Record<Phase, number>> {
    const current = (performance.now() - this.#phaseBegan) / 1000;
    return { ...this.#seconds, [this.#report.phase]: current };
  }

  enter(phase: Phase, total?: number): void {
    const { rows, total_rows } = this.#report;
    Object.assign(this.#seconds, this.seconds);
    this.#phaseBegan = performance.now();
    this.#report = {
      phase,
      rows: COUNTING.includes(phase) ? 0 : rows,
      total_rows: total ?? total_rows,
      bytes: null,
      total_bytes: null,
    };
    this.listener(this.#report);
  }

  change(part: Partial<Pick<Report, 'rows' | 'bytes' | 'total_bytes'>>): void {
    this.#report = { ...this.#report, ...part };
    this.listener(this.#report);
  }
}
