import { SingleBar } from 'cli-progress';
import type { ProgressReport } from '../rebuild/progress.js';

/** Shows a rebuild on a terminal; elsewhere a line for each phase. */
export class LoadBar {
  #bar: SingleBar | undefined;
  #phase: string | undefined;
  #loadingSince = 0;

  constructor(private readonly terminal: NodeJS.WriteStream) {}

  readonly show = ({ phase, rows, total }: ProgressReport): void => {
    if (phase !== this.#phase) this.#enter(phase, total);
    if (phase !== 'loading' || this.#bar === undefined) return;
    const seconds = Math.max(0.001, (Date.now() - this.#loadingSince) / 1000);
    this.#bar.update(rows, { rate: Math.round(rows / seconds).toLocaleString('en') });
  };

  /** Leaves the terminal as it was. */
  end(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }

  #enter(phase: string, total: number | undefined): void {
    this.#phase = phase;
    this.end();
    if (phase !== 'loading' || total === undefined || !this.terminal.isTTY) {
      this.terminal.write(`Snapshot: ${phase} …\n`);
      return;
    }
    this.#loadingSince = Date.now();
    this.#bar = new SingleBar({
      stream: this.terminal,
      format:
        'Snapshot: loading {bar} {percentage}% | {value} of {total} packages | {rate}/s | {eta_formatted} left',
      barsize: 30,
      gracefulExit: false,
    });
    this.#bar.start(total, 0, { rate: '0' });
  }
}
