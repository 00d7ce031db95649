import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { LeaseTimer } from '../../../../src/rebuild/process/lease-timer.js';

/** By how much timers of Node may be early, in milliseconds. */
const EARLY_TIMER_MS = 20;
const LONG_MS = 60_000;

const leases: LeaseTimer[] = [];
const leaseOf = (ms: number, requested = performance.now()) => {
  const lease = new LeaseTimer(ms, requested);
  leases.push(lease);
  return lease;
};

describe('LeaseTimer', () => {
  afterEach(() => {
    for (const lease of leases.splice(0)) lease.end();
  });

  it('is lost when its time is over, which begins with the request', async () => {
    const began = performance.now();
    const [late, early] = [leaseOf(200), leaseOf(200, began - 150)];
    expect([late.lost.aborted, early.lost.aborted]).to.deep.equal([false, false]);
    await new Promise((resolve) => early.lost.addEventListener('abort', resolve));
    expect(performance.now() - began).to.be.within(50 - EARLY_TIMER_MS, 150);
    expect(late.lost.aborted).to.be.false;
    await new Promise((resolve) => late.lost.addEventListener('abort', resolve));
    expect(performance.now() - began).to.be.at.least(200 - EARLY_TIMER_MS);
  });

  it('is lost at once if its time was over before the response', async () => {
    const lease = leaseOf(LONG_MS, performance.now() - LONG_MS);
    await pause(EARLY_TIMER_MS);
    expect(lease.lost.aborted).to.be.true;
  });

  it('is kept by renewals, each of which counts from its request', async () => {
    const lease = leaseOf(60);
    lease.extend(performance.now() + LONG_MS);
    await pause(60 + EARLY_TIMER_MS);
    expect(lease.lost.aborted).to.be.false;
    lease.extend(performance.now() - 60);
    await pause(EARLY_TIMER_MS);
    expect(lease.lost.aborted).to.be.true;
  });

  it('can be lost earlier, without a reason of its own', () => {
    const lease = leaseOf(LONG_MS);
    lease.lose();
    expect(lease.lost.reason).to.be.instanceOf(DOMException).with.property('name', 'AbortError');
  });

  it('leaves no timer behind at its end', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const [ended, lost] = [leaseOf(40), leaseOf(LONG_MS)];
    expect(timers()).to.equal(before + 2);
    ended.end();
    lost.lose();
    expect(timers()).to.equal(before);
    await pause(40 + EARLY_TIMER_MS);
    expect(ended.lost.aborted).to.be.false;
  });
});
