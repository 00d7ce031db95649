import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { FAULTS } from '../soak/faults/faults.js';

const DOCUMENT = new URL('../../docs/evidence/failure-modes.md', import.meta.url);

describe('the faults of the soak', () => {
  it('are events of docs/evidence/failure-modes.md', () => {
    const rows = readFileSync(DOCUMENT, 'utf8').matchAll(/^\| (.*?) +\| /gm);
    const events = [...rows].map(([, event]) => event);
    expect(events).to.include.members(FAULTS.flatMap((fault) => fault.rows));
  });

  it('have unique names', () => {
    const names = FAULTS.map(({ name }) => name);
    expect(new Set(names)).to.have.length(names.length);
  });
});
