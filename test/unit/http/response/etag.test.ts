import { expect } from 'chai';
import { contentTag, etagOf, FORMAT_VERSION, matches } from '../../../../src/http/response/etag.js';

describe('etagOf', () => {
  it('differs only between snapshots and requests', () => {
    expect(etagOf('g1', 'r'))
      .to.equal(etagOf('g1', 'r'))
      .and.to.match(/^W\/"[\w-]+"$/);
    expect(new Set([etagOf('g1', 'r'), etagOf('g2', 'r'), etagOf('g1', 's')]).size).to.equal(3);
  });

  it('differs between versions of the response format', () => {
    expect(etagOf('g1', 'r')).to.equal(etagOf('g1', 'r', FORMAT_VERSION));
    const versions = [FORMAT_VERSION - 1, FORMAT_VERSION, FORMAT_VERSION + 1];
    expect(new Set(versions.map((version) => etagOf('g1', 'r', version))).size).to.equal(3);
  });
});

describe('contentTag', () => {
  it('is a weak tag of the content', () => {
    const tags = ['a', 'b', 'a'].map((text) => contentTag(Buffer.from(text)));
    for (const tag of tags) expect(tag).to.match(/^W\/"[\w-]{27}"$/);
    expect(tags[0]).to.equal(tags[2]).and.not.to.equal(tags[1]);
  });
});

describe('matches', () => {
  const TAG = 'W/"abc"';
  const conditions: [what: string, condition: string | undefined, isMatched: boolean][] = [
    ['no condition', undefined, false],
    ['an empty one', '', false],
    ['the tag', TAG, true],
    ['the tag as a strong one', '"abc"', true],
    ['any', '*', true],
    ['another tag', 'W/"abcd"', false],
    ['the tag without its quotes', 'abc', false],
    ['a list with the tag', '"x", W/"abc"', true],
    ['a list without spaces', '"x",W/"abc","y"', true],
    ['a list with spaces', ' "x" ,\t"abc" ', true],
    ['a list of others', '"x", W/"y"', false],
    ['any, in a list', '"x", *', false],
    ['two prefixes', 'W/W/"abc"', false],
  ];
  for (const [what, condition, isMatched] of conditions) {
    it(`is ${isMatched} for ${what}`, () => {
      expect(matches(condition, TAG)).to.equal(isMatched);
      expect(matches(condition, '"abc"'), 'of a strong tag').to.equal(isMatched);
    });
  }
});
