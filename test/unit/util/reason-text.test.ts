import { expect } from 'chai';
import { DatasetError } from '../../../src/lists/fetch/dataset-error.js';
import { quote, truncateReason } from '../../../src/util/reason-text.js';

const MANY = 1_000_000;

describe('truncateReason', () => {
  it('keeps up to 300 characters', () => {
    for (const text of ['', 'line 2: bad quoting', 'x'.repeat(300), '🚀'.repeat(150)]) {
      expect(truncateReason(text)).to.equal(text);
    }
  });

  it('truncates longer texts to 300 characters, including the ellipsis', () => {
    for (const length of [301, MANY])
      expect(truncateReason('x'.repeat(length))).to.equal(`${'x'.repeat(299)}…`);
  });

  it('never splits a surrogate pair', () => {
    expect(truncateReason('🚀'.repeat(200))).to.equal(`${'🚀'.repeat(149)}…`);
    expect(truncateReason(`x${'🚀'.repeat(200)}`)).to.equal(`x${'🚀'.repeat(149)}…`);
  });

  it('bounds the message of every DatasetError', () => {
    const cause = new Error('the cause');
    const error = new DatasetError('x'.repeat(MANY), { cause });
    expect(error).to.deep.include({ message: `${'x'.repeat(299)}…`, cause });
  });
});

describe('quote', () => {
  it('quotes short values as JSON does', () => {
    for (const value of ['', 'a', 'a"b\\c\n\0\u007f', 'é日本🚀', 'x'.repeat(64)]) {
      expect(quote(value)).to.equal(JSON.stringify(value));
    }
  });

  it('truncates long values after 64 characters, with an ellipsis after the quote', () => {
    for (const length of [65, MANY]) expect(quote('x'.repeat(length))).to.equal(`"${'x'.repeat(64)}"…`);
  });

  it('splits neither a surrogate pair nor an escape sequence', () => {
    expect(quote(`x${'🚀'.repeat(40)}`)).to.equal(`"x${'🚀'.repeat(31)}"…`);
    expect(quote('\0'.repeat(20))).to.equal(`"${'\\u0000'.repeat(10)}"…`);
    expect(quote(`${'x'.repeat(63)}"y`)).to.equal(`"${'x'.repeat(63)}"…`);
  });
});
