import { expect } from 'chai';
import { TierPredictor } from '../../../src/search/tier-predictor.js';

describe('TierPredictor', () => {
  it('are not good before anything is known', () => {
    expect(new TierPredictor().firstTierSuffices(2)).to.be.false;
  });

  it('become good where most answers are filled, for queries of that length alone', () => {
    const odds = new TierPredictor();
    for (let i = 0; i < 30; i++) odds.record(2, i % 3 !== 0);
    expect(odds.firstTierSuffices(2)).to.be.true;
    expect(odds.firstTierSuffices(3)).to.be.false;
  });

  it('stay bad where few are', () => {
    const odds = new TierPredictor();
    for (let i = 0; i < 100; i++) odds.record(3, i % 5 === 0);
    expect(odds.firstTierSuffices(3)).to.be.false;
  });

  it('follow a change', () => {
    const odds = new TierPredictor();
    for (let i = 0; i < 100; i++) odds.record(2, true);
    for (let i = 0; i < 30; i++) odds.record(2, false);
    expect(odds.firstTierSuffices(2)).to.be.false;
  });
});
