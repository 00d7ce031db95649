import { expect } from 'chai';
import { retryAfterSeconds } from '../../../src/util/http-response.js';

describe('retryAfterSeconds', () => {
  it('reads seconds and dates', () => {
    expect(retryAfterSeconds('0')).to.equal(0);
    expect(retryAfterSeconds('120')).to.equal(120);
    expect(retryAfterSeconds(new Date(Date.now() + 90_000).toUTCString())).to.be.within(80, 91);
    expect(retryAfterSeconds('Mon, 31 Dec 2012 00:00:00 GMT')).to.equal(0);
    expect(retryAfterSeconds('Monday, 31-Dec-12 00:00:00 GMT')).to.equal(0);
  });

  it('is undefined for any other value', () => {
    for (const value of ['', '-1', '1.5', 'soon', '5, 5', 'never GMT', null, undefined])
      expect(retryAfterSeconds(value), String(value)).to.equal(undefined);
  });
});
