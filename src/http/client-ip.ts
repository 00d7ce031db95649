import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import proxyAddr from 'proxy-addr';

/** Bits of an IPv6 address that one subscriber is usually given whole (RFC 6177), so that the rest cannot dodge a limit. */
const IPV6_SUBSCRIBER_BITS = 64;

export interface ClientIp {
  /** The client as the limits see it: IPv4-mapped IPv6 is written as IPv4. */
  ip: string;
  /** The other end of the connection. */
  peer: string;
  /** `X-Forwarded-For` as received, left to right; empty without one. */
  forwardedFor: string[];
  /** Its last entries that trusted proxies wrote: the client, and the trusted proxies after it. */
  trustedHops: string[];
  /** What limits are counted by: the IPv4 address, or the /64 of an IPv6 one. */
  key: string;
}

export type ReadClientIp = (request: IncomingMessage) => ClientIp;

/**
 * Creates the function that determines the client of a request. `X-Forwarded-For` is read from the right, as long as the
 * hop that wrote an entry is trusted; an entry that is not an address ends the walk at the hop before it.
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

/** The IPv4 address itself, or the IPv6 network that limits are counted by, such as `2001:db8::/64`. */
function limitKey(ip: string): string {
  if (isIP(ip) === 4) return ip;
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${ip}/${IPV6_SUBSCRIBER_BITS}`);
  return `${network.toString()}/${IPV6_SUBSCRIBER_BITS}`;
}

/** Writes IPv4-mapped IPv6 as IPv4, and every IPv6 address in one form. */
function unwrap(ip: string): string {
  return isIP(ip) === 4 ? ip : ipaddr.process(ip).toString();
}

function splitForwardedFor(header: string | string[] | undefined): string[] {
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text === '' ? [] : text.split(',').map((hop) => hop.trim());
}
