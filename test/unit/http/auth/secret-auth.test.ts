import { expect } from 'chai';
import { secretsEqual } from '../../../../src/http/auth/secret-auth.js';

describe('secretsEqual', () => {
  it('accepts the configured secret', () => {
    expect(secretsEqual('open sesame', 'open sesame')).to.be.true;
    expect(secretsEqual('sésame 🚀', 'sésame 🚀')).to.be.true;
  });

  it('rejects any other text of any length', () => {
    for (const given of ['', 'open sesam', 'open sesame ', 'Open sesame', 'x'.repeat(10_000)])
      expect(secretsEqual(given, 'open sesame'), JSON.stringify(given)).to.be.false;
  });

  it('rejects a missing secret', () => {
    expect(secretsEqual(undefined, 'open sesame')).to.be.false;
    expect(secretsEqual(undefined, '')).to.be.false;
  });

  it('accepts nothing if no secret is configured', () => {
    for (const given of [undefined, '', 'undefined', 'null', 'open sesame'])
      expect(secretsEqual(given, undefined), JSON.stringify(given)).to.be.false;
  });
});
