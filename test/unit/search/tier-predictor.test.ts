import { expect } from 'chai';
import { TierPredictor } from '../../../src/search/tier-predictor.js';

describe('TierPredictor', () => {
  it('predicts an insufficient first tier before it has data', () => {
    expect(new TierPredictor().firstTierSuffices(2)).to.be.false;
  });

  it('predicts a sufficient first tier once most results fill it, only for queries of that length', () => {
    const odds = new TierPredictor();
    for (let i = 0; i < 30; i++) odds.record(2, i % 3 !== 0);
    expect(odds.firstTierSuffices(2)).to.be.true;
    expect(odds.firstTierSuffices(3)).to.be.false;
  });

  it('predicts an insufficient first tier if few results fill it', () => {
    const odds = new TierPredictor();
    for (let i = 0; i < 100; i++) odds.record(3, i % 5 === 0);
    expect(odds.firstTierSuffices(3)).to.be.false;
  });

  it('adapts to a change', () => {
    const odds = new TierPredictor();
    for (let i = 0; i < 100; i++) odds.record(2, true);
    for (let i = 0; i < 30; i++) odds.record(2, false);
    expect(odds.firstTierSuffices(2)).to.be.false;
  });
});
