import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { clientAddressReader } from '../../../../src/http/request/client-address.js';

const TRUSTED = ['10.0.0.0/8', '192.168.1.1', 'fd00::/8', 'fe80::/10'];

function request(remoteAddress: string | undefined, forwardedFor?: string): IncomingMessage {
  const headers = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor };
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage;
}

/** A client without a proxy. */
const DIRECT = {
  ip: '203.0.113.5',
  peer: '203.0.113.5',
  forwardedFor: [],
  trustedHops: [],
  key: '203.0.113.5',
};

describe('clientAddressReader', () => {
  const read = clientAddressReader(TRUSTED);

  it('uses the peer address without X-Forwarded-For', () => {
    expect(read(request('203.0.113.5'))).to.deep.equal(DIRECT);
    expect(read(request('10.0.0.1')).ip).to.equal('10.0.0.1');
    expect(read(request('10.0.0.1', '')).forwardedFor).to.deep.equal([]);
  });

  it('distinguishes known headers', () => {
    for (const forwardedFor of ['undefined', '203.0.113.7', undefined, '203.0.113.7 ', '', 'undefined']) {
      const { ip, forwardedFor: seen } = read(request('10.0.0.9', forwardedFor));
      expect(seen).to.deep.equal(forwardedFor ? [forwardedFor.trim()] : []);
      expect(ip).to.equal(forwardedFor?.startsWith('203') ? '203.0.113.7' : '10.0.0.9');
    }
  });

  it('returns the whole header, trusted or not', () => {
    expect(read(request('10.0.0.1', '198.51.100.1,  203.0.113.5 , 10.0.0.2'))).to.deep.equal({
      ip: '203.0.113.5',
      peer: '10.0.0.1',
      forwardedFor: ['198.51.100.1', '203.0.113.5', '10.0.0.2'],
      trustedHops: ['203.0.113.5', '10.0.0.2'],
      key: '203.0.113.5',
    });
    expect(read(request('203.0.113.5', 'a,,b')).forwardedFor).to.deep.equal(['a', '', 'b']);
  });

  const walks: [what: string, peer: string, forwardedFor: string, ip: string][] = [
    ['one trusted hop', '10.0.0.1', '203.0.113.5', '203.0.113.5'],
    ['a forged entry before that of a trusted hop', '10.0.0.1', '1.1.1.1, 203.0.113.5', '203.0.113.5'],
    ['an untrusted hop between trusted ones', '10.0.0.1', '1.1.1.1, 203.0.113.5, 10.0.0.2', '203.0.113.5'],
    ['trusted hops only', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['a trusted IPv6 hop', 'fd12::1', '203.0.113.5', '203.0.113.5'],
    ['an IPv4-mapped trusted hop', '::ffff:10.0.0.1', '203.0.113.5, ::ffff:10.0.0.2', '203.0.113.5'],
    ['an address next to the trusted one', '192.168.1.2', '203.0.113.5', '192.168.1.2'],
    ['a hop with a port, as some gateways write it', '10.0.0.1', '203.0.113.20:2222', '203.0.113.20'],
    ['an IPv6 hop in brackets', '10.0.0.1', '1.1.1.1, [2001:DB8::1]', '2001:db8::1'],
    ['trusted hops with ports', '10.0.0.1', '203.0.113.20, 10.9.9.9:80, [fd00::2]:65535', '203.0.113.20'],
    ['a trusted peer with a zone', 'fe80::9%br-lan', '203.0.113.5, fe80::2%wlan_1', '203.0.113.5'],
    ['an untrusted peer that claims trusted hops', '198.51.100.1', '203.0.113.5, 10.0.0.1', '198.51.100.1'],
  ];
  for (const [what, peer, forwardedFor, ip] of walks) {
    it(`walks from the right: ${what}`, () => {
      expect(read(request(peer, forwardedFor)).ip).to.equal(ip);
    });
  }

  it('stops at the hop that reported an invalid address', () => {
    const addresses = ['203.0.113.5.6', '256.1.1.1', '12345', '0x7f.1', '٣.1.1.1', '2001:db8:::1'];
    const ports = ['203.0.113.5:', '203.0.113.5:http', '203.0.113.5:123456', '[2001:db8::1', '[]:1'];
    const others = ['203.0.113.5/24', '203.0.113.5%eth0', 'unknown', '['.repeat(8000)];
    for (const entry of [...addresses, ...ports, ...others]) {
      const keyOf = (forwardedFor: string) => read(request('10.0.0.1', forwardedFor)).key;
      expect(keyOf(entry), entry).to.equal('10.0.0.1');
      expect(keyOf(`203.0.113.5, ${entry}`), entry).to.equal('10.0.0.1');
      expect(keyOf(`203.0.113.5, ${entry}, 10.0.0.2`), entry).to.equal('10.0.0.2');
      expect(keyOf(`${entry}, 203.0.113.5`), entry).to.equal('203.0.113.5');
    }
  });

  const believed: [peer: string, forwardedFor: string, believed: string[]][] = [
    ['10.0.0.1', '198.51.100.1', ['198.51.100.1']],
    ['10.0.0.1', '198.51.100.1, nonsense, 10.0.0.2', ['10.0.0.2']],
    ['10.0.0.1', '10.0.0.3, ::ffff:10.0.0.2', ['10.0.0.3', '10.0.0.2']],
  ];
  for (const [peer, forwardedFor, expected] of believed) {
    it(`returns the trusted part of the header: ${forwardedFor} from ${peer}`, () => {
      expect(read(request(peer, forwardedFor)).trustedHops).to.deep.equal(expected);
    });
  }

  it('ignores the header without trusted proxies', () => {
    const distrustful = clientAddressReader([]);
    for (const peer of ['10.0.0.1', '127.0.0.1', '::1'])
      expect(distrustful(request(peer, '203.0.113.5')).ip).to.equal(peer);
  });

  it('normalizes IPv4-mapped IPv6 to IPv4, so that a client has one key over both', () => {
    expect(read(request('::ffff:203.0.113.5'))).to.deep.equal(DIRECT);
    expect(read(request('::FFFF:CB00:7105')).key).to.equal('203.0.113.5');
    expect(read(request('10.0.0.1', '::ffff:203.0.113.5')).key).to.equal('203.0.113.5');
  });

  const keys: [ip: string, key: string][] = [
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:0001:0002::9', '2001:db8:1:2::/64'],
    ['::1', '::/64'],
    ['64:ff9b::c000:201', '192.0.2.1'],
    ['64:ff9b:0:0:0:1:c000:201', '64:ff9b::/64'],
    ['64:ff9b:1::c000:201', '64:ff9b:1::/64'],
    ['fe80::42%veth@if3', 'fe80::/64'],
  ];
  for (const [ip, key] of keys) {
    it(`limits ${ip} by the key ${key}`, () => {
      for (const client of [read(request(ip)), read(request('10.0.0.1', ip))]) {
        expect(client.key).to.equal(key);
        // Zones do not match the OpenAPI document.
        expect(client.ip + client.peer).not.to.include('%');
      }
    });
  }

  it('returns 0.0.0.0 for a closed connection', () => {
    const closed = { ip: '0.0.0.0', peer: '0.0.0.0', key: '0.0.0.0' };
    expect(read(request(undefined, '203.0.113.5'))).to.include(closed);
  });
});
