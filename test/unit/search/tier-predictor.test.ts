import { mock } from 'node:test';
import { expect } from 'chai';
import { createLogger } from '../../../src/util/log.js';
import type { Snapshot } from '../../../src/snapshot/snapshot.js';
import { NameSample, SAMPLE_RETRY_MS, TierPredictor } from '../../../src/search/tier-predictor.js';

const snapshot = (index: string) => ({ index }) as Snapshot;
const [FIRST, SECOND, THIRD] = [snapshot('a-1'), snapshot('a-2'), snapshot('a-3')] as const;

/** Resolves once pending promises have been handled. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A predictor, the indices whose samples it read, and its log lines. */
function predictor(read: (index: string) => NameSample) {
  const reads: string[] = [];
  const lines: string[] = [];
  const tiers = new TierPredictor(
    ({ index }) => {
      reads.push(index);
      return Promise.resolve().then(() => read(index));
    },
    createLogger('info', { destination: { write: (line) => lines.push(line) } }),
  );
  return { tiers, reads, lines };
}

describe('TierPredictor', () => {
  const sample = new NameSample(['lib-a', 'lib-b', 'lib-c', 'other'], 40);

  it('predicts an insufficient first tier until it has read a sample of the snapshot, once', async () => {
    const { tiers, reads } = predictor(() => sample);
    for (let i = 0; i < 3; i++) expect(tiers.firstTierSuffices(FIRST, 'lib', 10)).to.be.false;
    await settled();
    expect(tiers.firstTierSuffices(FIRST, 'lib', 10)).to.be.true;
    expect(reads).to.deep.equal(['a-1']);
  });

  it('predicts a sufficient first tier if more names than the limit start with the query', async () => {
    const { tiers } = predictor(() => sample);
    tiers.firstTierSuffices(FIRST, 'lib', 10);
    await settled();
    expect(tiers.firstTierSuffices(FIRST, 'lib', 29)).to.be.true;
    expect(tiers.firstTierSuffices(FIRST, 'lib', 30)).to.be.false;
    expect(tiers.firstTierSuffices(FIRST, 'ib-', 1)).to.be.false;
  });

  it('keeps the samples of two snapshots', async () => {
    const { tiers, reads } = predictor((index) => (index === 'a-1' ? sample : new NameSample([], 0)));
    const predict = async (from: Snapshot) => {
      tiers.firstTierSuffices(from, 'lib', 10);
      await settled();
      return tiers.firstTierSuffices(from, 'lib', 10);
    };
    expect(await predict(FIRST)).to.be.true;
    expect(await predict(SECOND)).to.be.false;
    expect(await predict(FIRST)).to.be.true;
    expect(reads).to.deep.equal(['a-1', 'a-2']);
    for (const from of [THIRD, FIRST]) await predict(from);
    expect(reads).to.deep.equal(['a-1', 'a-2', 'a-3', 'a-1']);
  });

  describe('whose sample cannot be read', () => {
    afterEach(() => mock.restoreAll());

    it('logs why, and tries again after a pause', async () => {
      let now = 1000;
      mock.method(performance, 'now', () => now);
      let fails = true;
      const { tiers, reads, lines } = predictor(() => {
        if (fails) throw new Error('no shard available');
        return sample;
      });
      tiers.firstTierSuffices(FIRST, 'lib', 10);
      await settled();
      now += SAMPLE_RETRY_MS - 1;
      expect(tiers.firstTierSuffices(FIRST, 'lib', 10)).to.be.false;
      expect(reads).to.have.length(1);
      expect(lines).to.have.length(1);
      expect(lines[0]).to.include('no shard available');

      fails = false;
      now += 1;
      tiers.firstTierSuffices(FIRST, 'lib', 10);
      await settled();
      expect(tiers.firstTierSuffices(FIRST, 'lib', 10)).to.be.true;
      expect(reads).to.have.length(2);
    });
  });
});
