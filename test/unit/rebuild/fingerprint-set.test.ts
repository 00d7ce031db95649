import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { FingerprintSet } from '../../../src/rebuild/fingerprint-set.js';
import { longestBlock } from '../../support/event-loop.js';
import { integer, seededRandom } from '../../../fixtures/random.js';

describe('FingerprintSet', () => {
  it('accepts each text once', async () => {
    const texts = ['', 'a', 'A', 'a ', 'ab', 'é', 'e\u0301', '🚀', '\0', 'x'.repeat(512), 'x'.repeat(511)];
    // The 32-bit hashes of these two are equal.
    texts.push('580-package-33850', '504-package-46866');
    const random = seededRandom(1);
    for (let i = 0; i < 200_000; i++) texts.push(`${integer(random, 0, 999)}-name-${i}`);
    const seen = await FingerprintSet.create();
    expect(texts.filter((text) => !seen.add(text))).to.deep.equal([]);
    expect(texts.filter((text) => seen.add(text))).to.deep.equal([]);
    const other = await FingerprintSet.create();
    expect(other.add('a'), 'another set').to.be.true;
  });

  it('grows in steps of 20 ms at most', async () => {
    const addAll = async (nextStep: () => void) => {
      const set = await FingerprintSet.create();
      // The last doubling is at 630,000 texts; of a single table, it would take 30 ms.
      for (let i = 0; i < 660_000; i++) {
        if (i % 1000 === 0) {
          await nextTurn();
          nextStep();
        }
        set.add(`package-${i}`);
      }
    };
    expect(await longestBlock(addAll, 10, 20)).to.be.at.most(20);
  });
});
