import { expect } from 'chai';
import { changeCounts, secondsToRetry } from '../../../src/web/api.js';

describe('changeCounts', () => {
  const of = (value: string) => changeCounts(new Headers({ 'X-Snapshot-Changes': value }));

  it('reads the counts by name, in any order', () => {
    expect(of('added=123, removed=45, updated=6')).to.deep.equal({ added: 123, removed: 45, updated: 6 });
    expect(of('updated=6,removed=0')).to.deep.equal({ added: 0, removed: 0, updated: 6 });
  });

  it('returns undefined without the header', () => {
    expect(changeCounts(new Headers())).to.equal(undefined);
  });
});

describe('secondsToRetry', () => {
  const DATE = 'Tue, 01 Jan 2030 00:00:00 GMT';
  const of = (value: string, date = DATE) =>
    secondsToRetry(new Headers({ 'Retry-After': value, Date: date }));

  it('reads seconds and dates, by the clock of the service', () => {
    expect(of('1')).to.equal(1);
    expect(of('120')).to.equal(120);
    expect(of('Tue, 01 Jan 2030 00:01:30 GMT')).to.equal(90);
    expect(of('Tuesday, 01-Jan-30 00:01:30 GMT')).to.equal(90);
    expect(of(new Date(Date.now() + 90_000).toUTCString(), '')).to.be.within(80, 91);
  });

  it('waits at most an hour', () => {
    for (const value of ['86400', '9'.repeat(400), 'Wed, 02 Jan 2030 00:00:00 GMT'])
      expect(of(value)).to.equal(3600);
  });

  it('is 0 if no later time is stated', () => {
    for (const value of [
      '',
      '0',
      '-1',
      '1.5',
      'soon',
      '5, 5',
      DATE,
      'Mon, 31 Dec 2029 00:00:00 GMT',
      'never GMT',
    ])
      expect(of(value), value).to.equal(0);
    expect(secondsToRetry(new Headers())).to.equal(0);
  });
});
