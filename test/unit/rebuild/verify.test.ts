import { expect } from 'chai';
import { DatasetError } from '../../../src/rebuild/dataset-error.js';
import { assertNotShrunk } from '../../../src/rebuild/verify.js';

describe('assertNotShrunk', () => {
  it('accepts any first snapshot', () => {
    expect(() => assertNotShrunk(1, undefined, 0)).not.to.throw();
  });

  it('accepts a snapshot of the same size or larger', () => {
    for (const total of [1000, 1001, 1_000_000]) {
      expect(() => assertNotShrunk(total, 1000, 0), String(total)).not.to.throw();
    }
  });

  it('accepts a snapshot that shrank by up to the percentage, and rejects a smaller one', () => {
    for (const [previous, percent, smallest] of [
      [1000, 10, 900],
      [4_000_000, 10, 3_600_000],
      [1000, 0, 1000],
      [1000, 1, 990],
      [1000, 50, 500],
      [999, 10, 900],
      [150, 18, 123],
      [3, 10, 3],
      [1, 99, 1],
    ] as const) {
      expect(() => assertNotShrunk(smallest, previous, percent), `${previous} - ${percent} %`).not.to.throw();
      expect(() => assertNotShrunk(smallest - 1, previous, percent), `${previous} - ${percent} %`).to.throw(
        DatasetError,
      );
    }
  });

  it('accepts everything at 100 percent', () => {
    expect(() => assertNotShrunk(1, 1_000_000, 100)).not.to.throw();
  });

  it('reports both sizes, and how to accept the snapshot', () => {
    expect(() => assertNotShrunk(899, 1000, 10)).to.throw(
      DatasetError,
      'the snapshot has 899 packages, the previous one 1000: smaller by more than 10 %' +
        ' (REBUILD_MAX_SHRINK_PERCENT); use force=true to accept it',
    );
  });
});
