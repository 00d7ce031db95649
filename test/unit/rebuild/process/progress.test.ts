import { expect } from 'chai';
import { Progress, type Phase, type ProgressReport } from '../../../../src/rebuild/process/progress.js';

describe('Progress', () => {
  it('reports each change to a listener in reports that stay as they are', () => {
    const reports: ProgressReport[] = [];
    const progress = new Progress(new Date('2025-01-02T03:04:05.678Z'), (report) => reports.push(report));
    reports.push(progress.report);
    progress.enter('checking');
    progress.change({ rows: 10 });
    progress.enter('creating');
    progress.enter('loading', 10);
    progress.change({ rows: 4 });
    progress.enter('merging');
    progress.change({ bytes: 1, totalBytes: 2 });
    progress.enter('comparing');
    const startedAt = '2025-01-02T03:04:05.678Z';
    const report = (phase: Phase, rows: number, total?: number) => ({ phase, rows, total, startedAt });
    expect(reports).to.deep.equal([
      report('downloading', 0),
      report('checking', 0),
      report('checking', 10),
      report('creating', 10),
      report('loading', 0, 10),
      report('loading', 4, 10),
      report('merging', 4, 10),
      { ...report('merging', 4, 10), bytes: 1, totalBytes: 2 },
      report('comparing', 0, 10),
    ]);
    expect(progress.report).to.equal(reports.at(-1));
  });
});
