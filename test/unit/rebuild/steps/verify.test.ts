import { expect } from 'chai';
import { DatasetError } from '../../../../src/lists/dataset-error.js';
import { assertNotShrunk } from '../../../../src/rebuild/steps/verify.js';

describe('assertNotShrunk', () => {
  it('accepts any first snapshot, snapshots of equal or larger size, and any size at 100 percent', () => {
    assertNotShrunk(1, undefined, 0);
    for (const total of [1000, 1001, 1_000_000]) assertNotShrunk(total, 1000, 0);
    assertNotShrunk(1, 1_000_000, 100);
  });

  for (const [previous, percent, smallest] of [
    [1000, 10, 900],
    [4_000_000, 10, 3_600_000],
    [1000, 0, 1000],
    [1000, 1, 990],
    [3000, 50, 1500],
    [999, 10, 900],
    [150, 18, 123],
    [3, 10, 3],
    [1, 99, 1],
  ] as const) {
    it(`accepts ${smallest} packages after ${previous} at ${percent} percent, and rejects one less`, () => {
      assertNotShrunk(smallest, previous, percent);
      expect(() => assertNotShrunk(smallest - 1, previous, percent)).to.throw(
        DatasetError,
        `the snapshot has ${smallest - 1} packages, the previous one ${previous}: smaller by more than ${percent} %` +
          ' (REBUILD_MAX_SHRINK_PERCENT); accept it with force=true or --force',
      );
    });
  }
});
