import { expect } from 'chai';
import { BypassTokens } from '../../../../src/http/auth/bypass-token.js';

const ISSUED_AT = 1_700_000_000;

/** All characters of a signature. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

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

  it('rejects a token with any changed character, even if its signature decodes to the same bytes', () => {
    const tokens = tokensAt(ISSUED_AT);
    for (let i = 0; i < token.length; i++)
      for (const character of ALPHABET) {
        const forged = token.slice(0, i) + character + token.slice(i + 1);
        expect(tokens.secondsLeft(forged), forged).to.equal(forged === token ? 3600 : 0);
      }
  });

  it('rejects malformed tokens of any length', () => {
    const wrong = [
      '',
      `:${signature}`,
      `0${token}`,
      `${ISSUED_AT}:${signature.slice(1)}`,
      `${ISSUED_AT}:${signature}\n`,
      `${ISSUED_AT}:${'A'.repeat(100_000)}`,
      `${ISSUED_AT}:${'ä'.repeat(43)}`,
    ];
    for (const text of wrong) {
      expect(tokensAt(ISSUED_AT).secondsLeft(text), JSON.stringify(text.slice(0, 80))).to.equal(0);
    }
  });

  it('rejects tokens of a sibling registry or of another secret', () => {
    expect(tokensAt(ISSUED_AT, 'secret', 'sibling').secondsLeft(token)).to.equal(0);
    expect(tokensAt(ISSUED_AT, 'other').secondsLeft(token)).to.equal(0);
    expect(tokensAt(ISSUED_AT, 'other').issue()).not.to.equal(token);
  });

  it('accepts no token without a secret, not even those of other replicas without one', () => {
    const [one, other] = [0, 1].map(() => new BypassTokens(undefined, 'registry', () => ISSUED_AT * 1000));
    expect(one?.secondsLeft(token)).to.equal(0);
    expect(one?.secondsLeft(other?.issue() ?? '')).to.equal(0);
  });
});
