import { expect } from 'chai';
import { Progress, type Phase, type Report } from '../../../src/rebuild/progress.js';

function report(phase: Phase, rows: number, total_rows: number | null = null): Report {
  return { phase, rows, total_rows, bytes: null, total_bytes: null };
}

describe('The progress of a rebuild', () => {
  it('is reported with each change in reports that stay as they are', () => {
    const reports: Report[] = [];
    const progress = new Progress((report) => reports.push(report));
    reports.push(progress.report);
    progress.enter('checking');
    progress.change({ rows: 10 });
    progress.enter('creating');
    progress.enter('loading', 10);
    progress.change({ rows: 4 });
    progress.enter('merging');
    progress.change({ bytes: 1, total_bytes: 2 });
    progress.enter('comparing');
    expect(reports).to.deep.equal([
      report('downloading', 0),
      report('checking', 0),
      report('checking', 10),
      report('creating', 10),
      report('loading', 0, 10),
      report('loading', 4, 10),
      report('merging', 4, 10),
      { ...report('merging', 4, 10), bytes: 1, total_bytes: 2 },
      report('comparing', 0, 10),
    ]);
    expect(progress.report).to.equal(reports.at(-1));
  });

  it('has the seconds of each phase so far', () => {
    const progress = new Progress();
    progress.enter('checking');
    progress.enter('loading');
    expect(progress.seconds).to.have.all.keys('downloading', 'checking', 'loading');
    for (const seconds of Object.values(progress.seconds)) expect(seconds).to.be.within(0, 1);
  });
});
