import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { EXCLUDED, FAULTS } from '../soak/faults/faults.js';

const DOCUMENT = new URL('../../docs/evidence/failure-modes.md', import.meta.url);

/** The first column of all tables of events. */
function documentedEvents(): string[] {
  const rows = readFileSync(DOCUMENT, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (event|-)/.test(line));
  return rows.map((row) => row.split(' | ')[0]?.slice(2).trim() ?? '');
}

describe('the faults of the soak', () => {
  const covered = FAULTS.flatMap(({ rows }) => rows);

  it('cover every event of docs/evidence/failure-modes.md, except those with a reason', () => {
    const missing = documentedEvents().filter((event) => !covered.includes(event) && !EXCLUDED.has(event));
    expect(missing).to.deep.equal([]);
  });

  it('and the exceptions name only events of it', () => {
    const unknown = [...covered, ...EXCLUDED.keys()].filter((event) => !documentedEvents().includes(event));
    expect(unknown).to.deep.equal([]);
  });

  it('have unique names', () => {
    const names = FAULTS.map(({ name }) => name);
    expect(new Set(names)).to.have.length(names.length);
  });
});
