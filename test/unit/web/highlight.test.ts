import { expect } from 'chai';
import { highlight } from '../../../src/web/highlight.js';

/** The name with highlighted parts in brackets. */
function marked(name: string, ...words: string[]): string {
  return highlight(name, words)
    .map(({ text, found }) => (found ? `[${text}]` : text))
    .join('');
}

describe('highlight', () => {
  it('highlights every match regardless of case, in the spelling of the name', () => {
    expect(marked('redis-redisearch', 'redis')).to.equal('[redis]-[redis]earch');
    expect(marked('python3-Redis', 'rEDIs')).to.equal('python3-[Redis]');
    expect(marked('@Scope/name', '@scope/')).to.equal('[@Scope/]name');
    expect(marked('redis', 'redis')).to.equal('[redis]');
    expect(marked('aaaab', 'aaa')).to.equal('[aaaa]b');
    expect(marked('a.b*c', '.b*')).to.equal('a[.b*]c');
  });

  it('unifies separators if the name does not contain the query itself', () => {
    expect(marked('Typing_Extensions', 'typing-ext')).to.equal('[Typing_Ext]ensions');
    expect(marked('a-_.b', 'A.b')).to.equal('[a-_.b]');
    expect(marked('a-_.b', '--b')).to.equal('a[-_.b]');
    expect(marked('Serde_Json', 'serde-j')).to.equal('[Serde_J]son');
    expect(marked('🚀__🚀', '🚀-')).to.equal('[🚀__]🚀');
    expect(marked('lodash._root', 'lodash.')).to.equal('[lodash.]_root');
  });

  it('highlights every word, each by itself', () => {
    expect(marked('python3-redis', 'redis', 'py')).to.equal('[py]thon3-[redis]');
    expect(marked('redis-py', 'redis-', 'is-p', 'py')).to.equal('[redis-py]');
    expect(marked('a_b.c', 'a-b', '.c')).to.equal('[a_b.c]');
    expect(marked('redis', 'sql', 'redi')).to.equal('[redi]s');
  });

  it('highlights nothing without a match', () => {
    expect(marked('redis', 'sql')).to.equal('redis');
    expect(marked('re', 'redis')).to.equal('re');
    expect(marked('redis', '')).to.equal('redis');
  });

  it('compares code point by code point, as the service does', () => {
    expect(marked('İstanbul', 'is')).to.equal('[İs]tanbul');
    expect(marked('ΟΔΟΣ', 'οδοσ')).to.equal('[ΟΔΟΣ]');
    expect(marked('straße', 'ss')).to.equal('straße');
    expect(marked('🚀rocket🚀', '🚀')).to.equal('[🚀]rocket[🚀]');
    expect(marked('日本語パッケージ', '語パ')).to.equal('日本[語パ]ッケージ');
  });
});
