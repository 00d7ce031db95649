import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import proxyAddr from 'proxy-addr';

/** An address with a port or in brackets, as some gateways write it: `192.0.2.1:1234`, `[2001:db8::1]:443`. */
const WITH_PORT = /^(?:\[(.*)\]|([\d.]+))(?::\d{1,5})?$/;

/** Prefix length of a subnet (RFC 4291). A client can use every address of its subnet, so all share one limit. */
const IPV6_SUBNET_BITS = 64;

/**
 * All clients behind a NAT64 have addresses with this prefix of 96 bits (RFC 6052), which end with their IPv4
 * addresses.
 */
const NAT64_PREFIX = ipaddr.IPv6.parse('64:ff9b::');

/** Used if the address is unknown, because the connection is closed. */
const UNKNOWN = '0.0.0.0';

/** Maximum number of remembered clients, and maximum length of their cache keys. The cache takes up to 10 MB. */
const MAX_KNOWN = 20_000;
const MAX_KNOWN_LENGTH = 128;

export interface ClientAddress {
  /** The client's address, without port and zone; IPv4-mapped IPv6 is written as IPv4. */
  readonly ip: string;
  /** The remote address of the connection. */
  readonly peer: string;
  /** `X-Forwarded-For` as received, left to right; empty without this header. */
  readonly forwardedFor: readonly string[];
  /** The entries of `X-Forwarded-For` that trusted proxies wrote, left to right: the client, then trusted proxies. */
  readonly trustedHops: readonly string[];
  /** The rate-limit key: the IPv4 address, also behind NAT64 (RFC 6052), or the /64 network of an IPv6 address. */
  readonly key: string;
}

export type ReadClientAddress = (request: IncomingMessage) => ClientAddress;

/**
 * Reads the entries of `X-Forwarded-For` from right to left, as long as trusted proxies wrote them. Stops before an
 * entry that is not an address. @param trustedProxies addresses and CIDR ranges, as in `TRUSTED_PROXIES`.
 */
export function clientAddressReader(trustedProxies: readonly string[]): ReadClientAddress {
  const isTrusted = proxyAddr.compile([...trustedProxies]);
  const read = (request: IncomingMessage, forwardedFor: string): ClientAddress => {
    const hops = proxyAddr
      .all(request, (hop, i) => isTrusted(addressOf(hop) ?? '', i))
      .map((hop) => addressOf(hop))
      // Only the last hop may be invalid, because `all` stops at the first hop that is not trusted.
      .filter((address) => address !== undefined);
    const ip = hops.at(-1) ?? UNKNOWN;
    return {
      ip,
      peer: addressOf(request.socket.remoteAddress) ?? UNKNOWN,
      forwardedFor: forwardedFor === '' ? [] : forwardedFor.split(',').map((hop) => hop.trim()),
      trustedHops: hops.slice(1).reverse(),
      key: limitKey(ip),
    };
  };
  // Without this cache, parsing would take as long as the rest of a rate limit check.
  const known = new LRUCache<string, ClientAddress>({
    max: MAX_KNOWN,
    maxEntrySize: MAX_KNOWN_LENGTH,
    sizeCalculation: (_client, key) => key.length,
  });
  return (request) => {
    const forwardedFor = (request.headers['x-forwarded-for'] ?? '').toString();
    const key = `${request.socket.remoteAddress} ${forwardedFor}`;
    let client = known.get(key);
    if (client === undefined) known.set(key, (client = read(request, forwardedFor)));
    return client;
  };
}

function limitKey(ip: string): string {
  if (isIP(ip) === 4) return ip;
  const address = ipaddr.IPv6.parse(ip);
  if (address.match(NAT64_PREFIX, 96)) return new ipaddr.IPv4(address.toByteArray().slice(12)).toString();
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${ip}/${IPV6_SUBNET_BITS}`);
  return `${network.toString()}/${IPV6_SUBNET_BITS}`;
}

/**
 * The address without port, brackets and IPv6 zone (a network interface). IPv4-mapped IPv6 is written as IPv4, other
 * IPv6 in canonical form. Undefined if the hop is not an address.
 */
export function addressOf(hop = ''): string | undefined {
  const [, bracketed, ipv4] = WITH_PORT.exec(hop) ?? [];
  const address = bracketed ?? ipv4 ?? hop;
  if (isIP(address) === 4) return address;
  const [ipv6 = ''] = address.split('%', 1);
  return isIP(ipv6) === 6 ? ipaddr.process(ipv6).toString() : undefined;
}
