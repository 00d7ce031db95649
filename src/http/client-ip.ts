import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import proxyAddr from 'proxy-addr';

/** Prefix length of the usual network of one IPv6 subscriber (RFC 6177). Limits apply to all of it. */
const IPV6_SUBSCRIBER_BITS = 64;

export interface ClientIp {
  /** The client's address; IPv4-mapped IPv6 is written as IPv4. */
  ip: string;
  /** The remote address of the connection. */
  peer: string;
  /** `X-Forwarded-For` as received, left to right; empty without one. */
  forwardedFor: string[];
  /** The last entries, written by trusted proxies: the client and the trusted proxies after it. */
  trustedHops: string[];
  /** The rate-limit key: the IPv4 address, or the /64 network of an IPv6 address. */
  key: string;
}

export type ReadClientIp = (request: IncomingMessage) => ClientIp;

/**
 * Creates the function that determines the client of a request. It reads `X-Forwarded-For` from the right
 * while the hop that wrote an entry is trusted, and stops before an entry that is not an address.
 * @param trustedProxies addresses and CIDR ranges, as in `TRUSTED_PROXIES`.
 */
export function clientIpReader(trustedProxies: readonly string[]): ReadClientIp {
  const trusted = proxyAddr.compile([...trustedProxies]);
  const read: ReadClientIp = (request) => {
    const hops = proxyAddr.all(request, trusted);
    const last = hops.findLastIndex((hop) => isIP(hop) !== 0);
    const ip = unwrap(hops[last] ?? '0.0.0.0');
    return {
      ip,
      peer: unwrap(request.socket.remoteAddress ?? '0.0.0.0'),
      forwardedFor: splitForwardedFor(request.headers['x-forwarded-for']),
      trustedHops: hops
        .slice(1, last + 1)
        .map(unwrap)
        .reverse(),
      key: limitKey(ip),
    };
  };
  // Without the header, all requests of a connection come from the same client.
  const ofConnections = new WeakMap<Socket, ClientIp>();
  return (request) => {
    if (request.headers['x-forwarded-for'] !== undefined) return read(request);
    let address = ofConnections.get(request.socket);
    if (address === undefined) ofConnections.set(request.socket, (address = read(request)));
    return address;
  };
}

/** The IPv4 address, or the IPv6 network, such as `2001:db8::/64`. */
function limitKey(ip: string): string {
  if (isIP(ip) === 4) return ip;
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${ip}/${IPV6_SUBSCRIBER_BITS}`);
  return `${network.toString()}/${IPV6_SUBSCRIBER_BITS}`;
}

/** Writes IPv4-mapped IPv6 as IPv4, and other IPv6 addresses in canonical form. */
function unwrap(ip: string): string {
  return isIP(ip) === 4 ? ip : ipaddr.process(ip).toString();
}

function splitForwardedFor(header: string | string[] | undefined): string[] {
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text === '' ? [] : text.split(',').map((hop) => hop.trim());
}
