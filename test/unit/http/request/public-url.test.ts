import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { publicUrlReader } from '../../../../src/http/request/public-url.js';

/** A request from an address with these headers. */
function request(remoteAddress: string, headers: Record<string, string>): IncomingMessage {
  return { headers, socket: { remoteAddress } } as unknown as IncomingMessage;
}

describe('publicUrlReader', () => {
  const read = publicUrlReader(undefined, ['10.0.0.0/8']);

  it('reads Host of clients that are no trusted proxies, whatever else they send', () => {
    const headers = { host: 'a:3000', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'b' };
    expect(read(request('192.0.2.1', headers))).to.equal('http://a:3000');
    expect(read(request('192.0.2.1', {}))).to.equal('http://localhost');
  });

  it('reads the last scheme and host of a trusted proxy, which earlier ones cannot replace', () => {
    const cases: [headers: Record<string, string>, url: string][] = [
      [{ host: 'a' }, 'http://a'],
      [{ host: 'a', 'x-forwarded-proto': 'https' }, 'https://a'],
      [{ host: 'a', 'x-forwarded-proto': 'javascript' }, 'http://a'],
      [{ host: 'a', 'x-forwarded-host': '' }, 'http://a'],
      [
        { host: 'a', 'x-forwarded-proto': 'http, https', 'x-forwarded-host': 'forged, b:8443' },
        'https://b:8443',
      ],
    ];
    for (const [headers, url] of cases)
      for (const address of ['10.1.2.3', '::ffff:10.1.2.3'])
        expect(read(request(address, headers))).to.equal(url);
  });

  it('is PUBLIC_URL if that is set', () => {
    for (const publicUrl of ['https://search.example/npm', 'https://search.example/npm/'])
      expect(publicUrlReader(publicUrl, [])(request('10.0.0.1', { host: 'a' }))).to.equal(
        'https://search.example/npm',
      );
  });
});
