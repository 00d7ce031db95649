import { expect } from 'chai';
import { isSecret } from '../../../src/http/secrets.js';

describe('isSecret', () => {
  it('accepts the configured secret', () => {
    expect(isSecret('open sesame', 'open sesame')).to.be.true;
    expect(isSecret('sésame 🚀', 'sésame 🚀')).to.be.true;
  });

  it('refuses any other text, whatever its length', () => {
    for (const given of [
      '',
      'o',
      'open sesam',
      'open sesame ',
      'Open sesame',
      'open sesame\0',
      'x'.repeat(10_000),
    ]) {
      expect(isSecret(given, 'open sesame'), JSON.stringify(given)).to.be.false;
    }
  });

  it('refuses a missing secret', () => {
    expect(isSecret(undefined, 'open sesame')).to.be.false;
    expect(isSecret(undefined, '')).to.be.false;
  });

  it('accepts nothing where no secret is configured', () => {
    for (const given of [undefined, '', 'undefined', 'null', 'open sesame']) {
      expect(isSecret(given, undefined), JSON.stringify(given)).to.be.false;
    }
  });
});
