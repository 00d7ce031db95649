import { expect } from 'chai';
import { BYPASS_SECONDS, BypassTokens } from '../../../src/http/bypass-token.js';

const ISSUED_AT = 1_700_000_000;

/** Tokens of a deployment whose clock shows `seconds`. */
function tokensAt(seconds: number, secret: string | undefined = 'secret', slug = 'registry'): BypassTokens {
  return new BypassTokens(secret, slug, () => seconds * 1000);
}

describe('BypassTokens', () => {
  const token = tokensAt(ISSUED_AT).issue();
  const [, signature = ''] = token.split(':');

  it('issues the time in seconds and a signature that is safe in a header', () => {
    expect(token).to.match(/^1700000000:[A-Za-z0-9_-]{43}$/);
    expect(tokensAt(ISSUED_AT + 0.999).issue()).to.equal(token);
    expect(tokensAt(ISSUED_AT + 1).issue()).not.to.include(signature);
  });

  it('uses the current time by default', () => {
    const tokens = new BypassTokens('secret', 'registry');
    expect(tokens.secondsLeft(tokens.issue())).to.be.within(BYPASS_SECONDS - 1, BYPASS_SECONDS);
  });

  it('is valid for 3600 seconds', () => {
    expect(BYPASS_SECONDS).to.equal(3600);
  });

  const ages: [what: string, ages: number[], left: (age: number) => number][] = [
    ['counts down for 3600 seconds', [0, 1, 1800, 3599, 3599.999], (age) => 3600 - Math.floor(age)],
    ['expires a token after 3600 seconds', [3600, 3601, 10 ** 9], () => 0],
    ['tolerates a clock that is a little behind, but never returns more', [-1, -5], () => 3600],
    ['rejects a token from the future', [-6, -3600, -ISSUED_AT], () => 0],
  ];
  for (const [what, tried, left] of ages) {
    it(what, () => {
      for (const age of tried)
        expect(tokensAt(ISSUED_AT + age).secondsLeft(token), `${age} s`).to.equal(left(age));
    });
  }

  it('rejects a token with a changed time', () => {
    for (const time of [ISSUED_AT + 1, `0${ISSUED_AT}`, 0])
      expect(tokensAt(ISSUED_AT + 1).secondsLeft(`${time}:${signature}`), String(time)).to.equal(0);
  });

  it('rejects a signature with any changed byte', () => {
    const bytes = Buffer.from(signature, 'base64url');
    for (let i = 0; i < bytes.length; i++) {
      const forged = Buffer.from(bytes.map((byte, at) => (at === i ? byte ^ 1 : byte))).toString('base64url');
      expect(tokensAt(ISSUED_AT).secondsLeft(`${ISSUED_AT}:${forged}`), `byte ${i}`).to.equal(0);
    }
  });

  it('rejects malformed tokens of any length', () => {
    const wrong = [
      '',
      `${ISSUED_AT}:`,
      `:${signature}`,
      `${ISSUED_AT}:${signature.slice(1)}`,
      `${ISSUED_AT}:${signature}A`,
      `${ISSUED_AT}:${signature}\n`,
      ` ${token}`,
      `${'0'.repeat(13)}${token}`,
      `${ISSUED_AT}:${'A'.repeat(100_000)}`,
      `${ISSUED_AT}:${'ä'.repeat(43)}`,
    ];
    for (const text of wrong) {
      expect(tokensAt(ISSUED_AT).secondsLeft(text), JSON.stringify(text.slice(0, 80))).to.equal(0);
    }
    expect(tokensAt(ISSUED_AT).secondsLeft(undefined)).to.equal(0);
  });

  it('rejects tokens of a sibling registry or of another secret', () => {
    expect(tokensAt(ISSUED_AT, 'secret', 'sibling').secondsLeft(token)).to.equal(0);
    expect(tokensAt(ISSUED_AT, 'other').secondsLeft(token)).to.equal(0);
    expect(tokensAt(ISSUED_AT, 'other').issue()).not.to.equal(token);
  });

  it('accepts a token issued by another replica', () => {
    expect(tokensAt(ISSUED_AT + 10).secondsLeft(tokensAt(ISSUED_AT).issue())).to.equal(3590);
  });

  it('neither accepts nor issues tokens without a secret', () => {
    const tokens = new BypassTokens(undefined, 'registry', () => ISSUED_AT * 1000);
    expect(tokens.secondsLeft(token)).to.equal(0);
    expect(() => tokens.issue()).to.throw('no bypass secret is configured');
  });
});
