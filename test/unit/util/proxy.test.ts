import { expect } from 'chai';
import { proxyOf } from '../../../src/util/proxy.js';

const PROXY = 'http://proxy.example:3128';

describe('The proxy of an address', () => {
  const proxied = (url: string, env: Record<string, string>) => proxyOf(new URL(url), env)?.href;

  it('is read from the variable of the scheme, then from ALL_PROXY, lower-case names first', () => {
    const one = 'http://one.example:1/';
    for (const [url, env, expected] of [
      ['https://a.example', { HTTPS_PROXY: one }, one],
      ['https://a.example', { https_proxy: one, HTTPS_PROXY: PROXY, ALL_PROXY: PROXY }, one],
      ['http://a.example', { HTTPS_PROXY: PROXY }, undefined],
      ['http://a.example', { HTTP_PROXY: '', ALL_PROXY: one }, one],
      ['http://a.example', { http_proxy: ' ', all_proxy: one }, one],
      ['http://a.example', {}, undefined],
    ] as const) {
      expect(proxied(url, env), JSON.stringify(env)).to.equal(expected);
    }
  });

  it('has http:// if it has no scheme', () => {
    for (const [value, expected] of [
      ['proxy:3128', 'http://proxy:3128/'],
      ['user:change-me@10.0.0.1:3128', 'http://user:change-me@10.0.0.1:3128/'],
      [' [::1]:3128\n', 'http://[::1]:3128/'],
      ['https://proxy', 'https://proxy/'],
      ['HTTP://proxy:1', 'http://proxy:1/'],
    ] as const) {
      expect(proxied('https://a.example', { HTTPS_PROXY: value }), value).to.equal(expected);
    }
  });

  it('cannot be anything else: the message names the variable without its password', () => {
    for (const [variable, value, reason] of [
      ['ALL_PROXY', 'socks5://user:hush-proxy@proxy:1080', ': socks5:// is not supported'],
      ['all_proxy', 'socks5h://hush-proxy@proxy', ': socks5h:// is not supported'],
      ['HTTPS_PROXY', 'socks4a://proxy', ': socks4a:// is not supported'],
      ['https_proxy', 'http://user:hush-proxy@proxy:a', ''],
      ['HTTPS_PROXY', 'http:hush-proxy:3128', ''],
    ] as const) {
      const call = () => proxied('https://a.example', { [variable]: value });
      expect(call).to.throw(new RegExp(`\\b${variable} is not an http\\(s\\) address${reason}$`));
    }
  });

  /** Entries of `NO_PROXY`, addresses that they cover, and others. */
  const ENTRIES: [entry: string, covered: string[], others: string[]][] = [
    ['*', ['https://a.example', 'http://[::1]:81', 'http://10.0.0.1'], []],
    ['corp.example', ['https://corp.example', 'http://a.CORP.example.:81'], ['https://notcorp.example']],
    ['.corp.example', ['https://corp.example', 'https://sub.corp.example'], ['https://notcorp.example']],
    ['*.corp.example', ['https://sub.corp.example'], ['https://corp.example', 'https://xcorp.example']],
    ['corp.example:8443', ['http://sub.corp.example:8443'], ['https://corp.example']],
    ['corp.example:443', ['https://corp.example'], ['http://corp.example']],
    ['10.0.0.0/8', ['http://10.1.2.3', 'http://[::ffff:10.1.2.3]', 'http://0x0a000001'], ['http://11.0.0.1']],
    ['192.168.1.0/25', ['http://192.168.1.127'], ['http://192.168.1.128', 'http://192.168.1.example']],
    ['10.0.0.1', ['http://10.0.0.1', 'http://10.0.0.1:81'], ['http://110.0.0.1', 'http://10.0.0.11']],
    ['0.0.1', [], ['http://10.0.0.1']],
    ['10.0.0.1:81', ['http://10.0.0.1:81'], ['http://10.0.0.1']],
    ['10.0.0.0/33', [], ['http://10.0.0.1']],
    ['::1', ['http://[::1]', 'http://[::1]:81'], ['http://[::2]', 'http://127.0.0.1']],
    ['[::1]:81', ['http://[::1]:81'], ['http://[::1]']],
    ['fd00::/8', ['http://[fd12::1]'], ['http://[fe80::1]', 'http://10.0.0.1']],
    ['a.example, b.example c.example,', ['http://b.example', 'http://c.example'], ['http://d.example']],
  ];
  for (const [entry, covered, others] of ENTRIES) {
    it(`is not used for hosts that NO_PROXY=${entry} covers`, () => {
      for (const name of ['NO_PROXY', 'no_proxy']) {
        const used = (url: string) => proxied(url, { ALL_PROXY: PROXY, [name]: entry }) !== undefined;
        expect([...covered, ...others].filter(used)).to.deep.equal(others);
      }
    });
  }
});
