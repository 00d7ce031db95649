import { expect } from 'chai';
import { FirstTierOdds } from '../../../src/catalog/first-tier-odds.js';

describe('FirstTierOdds', () => {
  it('are not good before anything is known', () => {
    expect(new FirstTierOdds().areGood(2)).to.be.false;
  });

  it('become good where most answers are filled, for queries of that length alone', () => {
    const odds = new FirstTierOdds();
    for (let i = 0; i < 30; i++) odds.learn(2, i % 3 !== 0);
    expect(odds.areGood(2)).to.be.true;
    expect(odds.areGood(3)).to.be.false;
  });

  it('stay bad where few are', () => {
    const odds = new FirstTierOdds();
    for (let i = 0; i < 100; i++) odds.learn(3, i % 5 === 0);
    expect(odds.areGood(3)).to.be.false;
  });

  it('follow a change', () => {
    const odds = new FirstTierOdds();
    for (let i = 0; i < 100; i++) odds.learn(2, true);
    for (let i = 0; i < 30; i++) odds.learn(2, false);
    expect(odds.areGood(2)).to.be.false;
  });
});
