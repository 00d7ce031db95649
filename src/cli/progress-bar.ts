import { SingleBar } from 'cli-progress';
import type { Report as RebuildReport } from '../rebuild/progress.js';

const MEGABYTE = 1_000_000;

/** The quantity that the bar of a long phase shows. */
interface Quantity {
  done: number;
  /** Undefined if it is unknown. */
  total: number | undefined;
  unit: string;
}

/** A progress report of a rebuild, or of another command with other phases. */
type Report = Partial<Omit<RebuildReport, 'phase'>> & { phase: string };

/** Phases whose bar counts packages. */
const COUNTED = ['loading', 'writing'];

/** Shows the progress of a command, in one line per phase. On a terminal, long phases have a bar. */
export class ProgressBar {
  #bar: SingleBar | undefined;
  #phase: string | undefined;
  #isClosed = false;

  /**
   * @param signal aborts on the first Ctrl-C. The bar is then closed at once, because a second Ctrl-C ends the process
   * without a cleanup.
   */
  constructor(
    private readonly terminal: NodeJS.WriteStream,
    signal: AbortSignal,
    private readonly what = 'Snapshot',
  ) {
    signal.addEventListener('abort', () => this.close());
  }

  readonly show = (report: Report): void => {
    // A rebuild still reports progress while it is being stopped. A new bar would keep the process alive.
    if (this.#isClosed) return;
    if (report.phase !== this.#phase) this.#enter(report.phase);
    const quantity = this.terminal.isTTY ? quantityOf(report) : undefined;
    if (quantity === undefined) return;
    this.#bar ??= this.#start(report.phase, quantity);
    this.#bar.update(quantity.done);
  };

  /** Ends the bar and restores the terminal. */
  end(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }

  /** Ends the bar and ignores later reports. */
  close(): void {
    this.#isClosed = true;
    this.end();
  }

  #enter(phase: string): void {
    this.#phase = phase;
    this.end();
    if (!COUNTED.includes(phase) || !this.terminal.isTTY) this.terminal.write(`${this.what}: ${phase} …\n`);
  }

  #start(phase: string, { total, unit }: Quantity): SingleBar {
    const counts = total === undefined ? '{value}' : '{bar} {percentage}% | {value} of {total}';
    const format = `${this.what}: ${phase} ${counts} ${unit} | {duration_formatted}`;
    const bar = new SingleBar({ stream: this.terminal, format, barsize: 30, gracefulExit: false });
    bar.start(total ?? 0, 0);
    return bar;
  }
}

/** Undefined for a small download or merge, which takes almost no time. */
function quantityOf(report: Report): Quantity | undefined {
  const { phase, rows = 0, total_rows: total } = report;
  const [bytes, totalBytes] = [report.bytes ?? 0, report.total_bytes ?? 0];
  if (COUNTED.includes(phase)) return total ? { done: rows, total, unit: 'packages' } : undefined;
  if ((totalBytes || bytes) < MEGABYTE) return undefined;
  const inMegabytes = (size: number) => Math.round(size / MEGABYTE);
  return { done: inMegabytes(bytes), total: inMegabytes(totalBytes) || undefined, unit: 'MB' };
}
