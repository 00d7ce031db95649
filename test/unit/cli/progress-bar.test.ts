import { PassThrough } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { expect } from 'chai';
import { ProgressBar } from '../../../src/cli/progress-bar.js';

describe('ProgressBar', () => {
  it('shows nothing and keeps no process alive after it was closed, although a stopping rebuild still reports', () => {
    const terminal = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const report = { phase: 'loading', rows: 1, total: 10, startedAt: new Date(0).toISOString() } as const;
    const before = timers();
    const stopping = new AbortController();
    const bar = new ProgressBar(terminal as unknown as WriteStream, stopping.signal);
    bar.show(report);
    expect(timers()).to.equal(before + 1);
    stopping.abort();
    const { writableLength } = terminal;
    bar.show({ ...report, rows: 2 });
    bar.show({ ...report, phase: 'merging' });
    expect(timers()).to.equal(before);
    expect(terminal.writableLength).to.equal(writableLength);
  });
});
