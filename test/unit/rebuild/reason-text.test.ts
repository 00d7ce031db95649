import { expect } from 'chai';
import { DatasetError } from '../../../src/rebuild/dataset-error.js';
import { MAX_REASON_LENGTH, quote, truncateReason } from '../../../src/rebuild/reason-text.js';

const LONE_SURROGATE = /\p{Cs}/u;

describe('truncateReason', () => {
  it('keeps up to 300 characters', () => {
    for (const text of ['', 'line 2: bad quoting', 'x'.repeat(300), '🚀'.repeat(150)]) {
      expect(truncateReason(text)).to.equal(text);
    }
  });

  it('truncates longer texts to 300 characters, including the ellipsis', () => {
    expect(truncateReason('x'.repeat(301))).to.equal(`${'x'.repeat(299)}…`);
    expect(truncateReason('x'.repeat(1_000_000))).to.have.length(MAX_REASON_LENGTH);
  });

  it('never splits a surrogate pair', () => {
    for (const prefix of ['', 'x']) {
      const truncated = truncateReason(prefix + '🚀'.repeat(200));
      expect(truncated)
        .to.match(/^x?🚀+…$/u)
        .and.not.to.match(LONE_SURROGATE);
      expect(truncated.length).to.be.within(299, 300);
    }
  });

  it('bounds the message of every DatasetError', () => {
    const cause = new Error('the cause');
    const error = new DatasetError('x'.repeat(1_000_000), { cause });
    expect(error.message).to.have.length(300);
    expect(error.cause).to.equal(cause);
  });
});

describe('quote', () => {
  it('quotes short values as JSON does', () => {
    for (const value of ['', 'a', 'a"b\\c\n\0\u007f', 'é日本🚀', 'x'.repeat(64)]) {
      expect(quote(value)).to.equal(JSON.stringify(value));
    }
  });

  it('truncates long values after 64 characters, with an ellipsis after the quote', () => {
    expect(quote('x'.repeat(65))).to.equal(`"${'x'.repeat(64)}"…`);
    expect(quote('x'.repeat(1_000_000))).to.equal(`"${'x'.repeat(64)}"…`);
  });

  it('splits neither a surrogate pair nor an escape sequence', () => {
    expect(quote(`x${'🚀'.repeat(40)}`)).to.equal(`"x${'🚀'.repeat(31)}"…`);
    expect(quote('\0'.repeat(20))).to.equal(`"${'\\u0000'.repeat(10)}"…`);
    expect(quote(`${'x'.repeat(63)}"y`)).to.equal(`"${'x'.repeat(63)}"…`);
  });
});
