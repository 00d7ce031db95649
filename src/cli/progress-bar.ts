import { SingleBar } from 'cli-progress';
import type { ProgressReport } from '../rebuild/process/progress.js';

const MEGABYTE = 1_000_000;

/** What a bar shows in a long phase. */
interface Quantity {
  done: number;
  total: number;
  unit: string;
}

/** Shows the progress of a rebuild: one line per phase; on a terminal, a bar for loading. */
export class ProgressBar {
  #bar: SingleBar | undefined;
  #phase: string | undefined;
  #phaseBegan = 0;
  #isClosed = false;

  /** @param signal closes it when it aborts, at once: a second Ctrl-C ends the process without another chance. */
  constructor(
    private readonly terminal: NodeJS.WriteStream,
    signal: AbortSignal,
  ) {
    signal.addEventListener('abort', () => this.close());
  }

  readonly show = (report: ProgressReport): void => {
    // A rebuild that is being stopped still reports. A bar would keep the process alive.
    if (this.#isClosed) return;
    if (report.phase !== this.#phase) this.#enter(report.phase);
    const quantity = this.terminal.isTTY ? quantityOf(report) : undefined;
    if (quantity === undefined) return;
    this.#bar ??= this.#start(report.phase, quantity);
    this.#bar.update(quantity.done, { speed: speedOf(quantity, Date.now() - this.#phaseBegan) });
  };

  /** Ends the bar and restores the terminal. */
  end(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }

  /** Ends the bar for good. */
  close(): void {
    this.#isClosed = true;
    this.end();
  }

  #enter(phase: string): void {
    this.#phase = phase;
    this.#phaseBegan = Date.now();
    this.end();
    if (phase !== 'loading' || !this.terminal.isTTY) this.terminal.write(`Snapshot: ${phase} …\n`);
  }

  #start(phase: string, { total, unit }: Quantity): SingleBar {
    const bar = new SingleBar({
      stream: this.terminal,
      format: `Snapshot: ${phase} {bar} {percentage}% | {value} of {total} ${unit}{speed}`,
      barsize: 30,
      gracefulExit: false,
    });
    bar.start(total, 0, { speed: '' });
    return bar;
  }
}

/** Rate and remaining time since the phase began; nothing while that is unknown, as in a merge that stalls. */
function speedOf({ done, total }: Quantity, ms: number): string {
  const rate = (done * 1000) / Math.max(1, ms);
  if (rate < 0.5) return '';
  const left = Math.ceil((total - done) / rate);
  const time = left < 60 ? `${left} s` : `${Math.ceil(left / 60)} min`;
  return ` | ${Math.round(rate).toLocaleString('en')}/s | ${time} left`;
}

function quantityOf({ phase, rows, total, bytes = 0, totalBytes = 0 }: ProgressReport): Quantity | undefined {
  if (phase === 'loading') return total === undefined ? undefined : { done: rows, total, unit: 'packages' };
  // Merging a small index takes almost no time.
  if (totalBytes < 100 * MEGABYTE) return undefined;
  return { done: Math.round(bytes / MEGABYTE), total: Math.round(totalBytes / MEGABYTE), unit: 'MB' };
}
