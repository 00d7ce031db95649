import { expect } from 'chai';
import { Progress, type ProgressReport } from '../../../src/rebuild/progress.js';

const STARTED_AT = new Date('2025-01-02T03:04:05.678Z');
const startedAt = STARTED_AT.toISOString();

describe('Progress', () => {
  it('starts with the download', () => {
    expect(new Progress(STARTED_AT).report).to.deep.equal({
      phase: 'downloading',
      rows: 0,
      total: undefined,
      startedAt,
    });
  });

  it('reports every change to a listener, in order', () => {
    const reports: ProgressReport[] = [];
    const progress = new Progress(STARTED_AT, (report) => reports.push(report));
    progress.enter('checking');
    progress.count(10);
    progress.enter('creating');
    progress.enter('loading', 10);
    progress.count(4);
    progress.count(10);
    progress.enter('merging');
    expect(reports).to.deep.equal([
      { phase: 'checking', rows: 0, total: undefined, startedAt },
      { phase: 'checking', rows: 10, total: undefined, startedAt },
      { phase: 'creating', rows: 10, total: undefined, startedAt },
      { phase: 'loading', rows: 0, total: 10, startedAt },
      { phase: 'loading', rows: 4, total: 10, startedAt },
      { phase: 'loading', rows: 10, total: 10, startedAt },
      { phase: 'merging', rows: 10, total: 10, startedAt },
    ]);
    expect(progress.report).to.equal(reports.at(-1));
  });

  it('does not modify a report after returning it', () => {
    const progress = new Progress(STARTED_AT);
    const { report } = progress;
    progress.enter('loading', 5);
    progress.count(5);
    expect(report).to.deep.equal({ phase: 'downloading', rows: 0, total: undefined, startedAt });
  });
});
