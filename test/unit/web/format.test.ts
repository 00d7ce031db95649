import { expect } from 'chai';
import { formatCompact, splitAtWords } from '../../../src/web/format.js';

describe('formatCompact', () => {
  it('writes three digits and a unit, separated by a space that does not break', () => {
    for (const [count, text] of [
      [0, '0'],
      [999, '999'],
      [1000, '1 K'],
      [1234, '1.23 K'],
      [12_300_000, '12.3 M'],
      [123_456_789, '123 M'],
      [999_999_999, '1 B'],
      [2 ** 53 - 1, '9010 T'],
    ] as const)
      expect(formatCompact(count)).to.equal(text.replace(' ', '\u202F'));
  });
});

/** The name with the parts that match in brackets. */
function marked(name: string, ...words: string[]): string {
  const parts = splitAtWords(name, words).map((text, i) => (i % 2 === 1 ? `[${text}]` : text));
  return parts.join('');
}

describe('splitAtWords', () => {
  it('finds every match regardless of case, in the spelling of the name', () => {
    expect(marked('redis-redisearch', 'redis')).to.equal('[redis]-[redis]earch');
    expect(marked('python3-Redis', 'rEDIs')).to.equal('python3-[Redis]');
    expect(marked('@Scope/name', '@scope/')).to.equal('[@Scope/]name');
    expect(marked('a.b*c', '.b*')).to.equal('a[.b*]c');
    expect(marked('日本語パッケージ', '語パ')).to.equal('日本[語パ]ッケージ');
    expect(marked('ΟΔΟΣ', 'οδοσ')).to.equal('[ΟΔΟΣ]');
  });

  it('takes words as they are, not as patterns', () => {
    for (const word of ['$(a)*', 'b+c?d', '[e]{2}', 'f|g^', 'h\\.i\\'])
      expect(marked(`x${word}y`, word)).to.equal(`x[${word}]y`);
    expect(marked('redis', 're*', 'r.d')).to.equal('redis');
  });

  it('does not tell separators apart', () => {
    expect(marked('Typing_Extensions', 'typing-ext')).to.equal('[Typing_Ext]ensions');
    expect(marked('a-_.b', 'A.b')).to.equal('[a-_.b]');
    expect(marked('a-_.b', '--b')).to.equal('a[-_.b]');
    expect(marked('🚀__🚀', '🚀-')).to.equal('[🚀__]🚀');
  });

  it('finds every word, each by itself', () => {
    expect(marked('python3-redis', 'redis', 'py')).to.equal('[py]thon3-[redis]');
    expect(marked('a_b.c', 'a-b', '.c')).to.equal('[a_b][.c]');
    expect(marked('redis', 'sql', 'redi')).to.equal('[redi]s');
  });

  it('finds nothing without a match', () => {
    expect(marked('redis', 'sql')).to.equal('redis');
    expect(marked('re', 'redis')).to.equal('re');
    expect(marked('redis')).to.equal('redis');
  });
});
