import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { FingerprintSet } from '../../../src/rebuild/fingerprint-set.js';
import { longestBlock } from '../../support/event-loop.js';
import { integer, seededRandom } from '../../../fixtures/random.js';

describe('FingerprintSet', () => {
  it('accepts each text once', async () => {
    const seen = await FingerprintSet.create();
    for (const text of [
      '',
      'a',
      'A',
      'a ',
      'ab',
      'ba',
      'é',
      'e\u0301',
      '🚀',
      '\0',
      'x'.repeat(512),
      'x'.repeat(511),
    ]) {
      expect(seen.add(text), JSON.stringify(text)).to.be.true;
      expect(seen.add(text), JSON.stringify(text)).to.be.false;
    }
  });

  it('starts empty, independent of other sets', async () => {
    const [one, other] = [await FingerprintSet.create(), await FingerprintSet.create()];
    one.add('a');
    expect(other.add('a')).to.be.true;
  });

  it('distinguishes texts with two equal 32-bit hashes', async () => {
    const seen = await FingerprintSet.create();
    expect(seen.add('580-package-33850')).to.be.true;
    expect(seen.add('504-package-46866')).to.be.true;
  });

  it('stores 200,000 texts without losing or confusing any', async () => {
    const random = seededRandom(1);
    const texts = Array.from({ length: 200_000 }, (_, i) => `${integer(random, 0, 999)}-package-${i}`);
    const seen = await FingerprintSet.create();
    expect(texts.filter((text) => !seen.add(text))).to.deep.equal([]);
    expect(texts.filter((text) => seen.add(text))).to.deep.equal([]);
  });

  it('grows in steps of 20 ms at most', async () => {
    const addAll = async (nextStep: () => void) => {
      const set = await FingerprintSet.create();
      for (let i = 0; i < 1_300_000; i++) {
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
