import { PassThrough, Writable } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { expect } from 'chai';
import { ProgressBar } from '../../../src/cli/progress-bar.js';

describe('ProgressBar', () => {
  it('shows the bytes of a merge with the time that has passed', () => {
    let output = '';
    const write = (chunk: Buffer, _encoding: string, done: () => void) => {
      output += chunk.toString();
      done();
    };
    const terminal = Object.assign(new Writable({ write }), { isTTY: true, columns: 200 });
    const report = { phase: 'merging', rows: 0, total_bytes: 4e9 } as const;
    const shown = (bytes: number) => {
      bar.show({ ...report, bytes });
      bar.end();
      const text = output;
      output = '';
      return text;
    };
    const bar = new ProgressBar(terminal as unknown as WriteStream, new AbortController().signal);
    for (let i = 0; i < 20; i++) bar.show({ ...report, bytes: 0 });
    expect(shown(0)).to.match(/ 0 of 4000 MB \| 0s/);
    expect(shown(2e9)).to.match(/50% \| 2000 of 4000 MB \| 0s/);
  });

  it('shows nothing and keeps no process alive after it was closed, although a stopping rebuild still reports', () => {
    const terminal = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const report = { phase: 'loading', rows: 1, total_rows: 10 } as const;
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
