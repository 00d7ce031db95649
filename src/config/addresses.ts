import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import proxyAddr from 'proxy-addr';
import * as z from 'zod';
import { percentDecoded } from '../util/decode.js';

/**
 * Error messages never contain the actual value, because it may have a password or a token. Every library that receives
 * a valid value can parse it. White space around a URL or an item of a list, such as the line end of a YAML block, is
 * removed. White space in `HOST` is an error.
 */

const NODES = 'must be the http(s) address of one or more nodes, comma separated';

export const nodeUrls = z
  .string('is required, such as http://127.0.0.1:9200')
  .transform(itemsOf)
  .pipe(z.array(urlOf(['http:', 'https:'], NODES)).min(1, NODES))
  .refine((nodes) => !nodes.some(hasQueryOrFragment), 'must have no query and no fragment')
  .refine(shareCredentials, 'must have a user and a password, the same for all nodes, or none at all')
  .refine(
    (nodes) => new Set(nodes.map((node) => new URL(node).href)).size === nodes.length,
    'must name each node once',
  );

export const redisUrl = urlOf(['redis:', 'rediss:'], 'must be redis://… or rediss://…')
  // An opaque host may contain characters that no resolver accepts.
  .refine((text) => !new URL(text).hostname.includes('%'), 'must have a host without percent-encoding')
  .refine(
    (text) => /^(\/\d*)?$/.test(new URL(text).pathname),
    'must have no path except a database number, such as /0',
  )
  // The query can set any option of ioredis, including options that the service relies on.
  .refine((text) => {
    const { hash, search } = new URL(text);
    return hash === '' && /^(\?family=[046])?$/.test(search);
  }, 'must have no fragment, and no query except ?family=4 or ?family=6');

export const datasetUrl = urlOf(
  ['http:', 'https:', 'file:'],
  'must be http://… or https://… or file:///…',
).refine(
  (text) => !text.startsWith('file:') || (percentDecoded(text) !== undefined && !/%(00|2f)/i.test(text)),
  'must have a path that is percent-encoded UTF-8, without NUL and encoded slashes',
);

export const datasetUrls = z
  .string()
  .trim()
  .transform((text) => text.split(/\s+/))
  .pipe(z.array(datasetUrl));

/** The host must have no placeholder, because a package name could then lead to another site. */
export const urlTemplate = z
  .string()
  .trim()
  .refine(
    (text) => isUrl(text.replaceAll(/\{\+?name\}/g, 'name'), ['http:', 'https:']),
    'must be http://… or https://…',
  )
  .regex(/^https?:\/\/[^/?#{]+[/?#].*\{\+?name\}/, 'must contain {name} or {+name} after the host')
  .refine((text) => otherPlaceholder(text) === undefined, {
    error: ({ input }) =>
      `must not contain ${otherPlaceholder(input as string)}: only {name} and {+name} are replaced`,
  });

/** The first text in braces that would stay in every URL, such as `{version}`, `{{name}}` or `${name}`. */
function otherPlaceholder(template: string): string | undefined {
  return /[$%]?\{[^}]*\}*|\}+/.exec(template.replaceAll(/(?<![{$%])\{\+?name\}(?!\})/g, 'name'))?.[0];
}

/** Links must not contain credentials, and `fetch` rejects addresses with credentials. */
export const plainUrl = urlOf(['http:', 'https:'], 'must be http://… or https://…').refine((text) => {
  const { username, password } = new URL(text);
  return username === '' && password === '' && !hasQueryOrFragment(text);
}, 'must have no user, password, query or fragment');

/** Letters, digits, `-` and `_`, in parts separated by dots. */
const HOST_NAME = /^(?=.{1,253}$)[a-z\d_]([a-z\d_-]*[a-z\d_])?(\.[a-z\d_]([a-z\d_-]*[a-z\d_])?)*$/i;

export const host = z
  .string()
  .refine(
    (text) => isIP(text) !== 0 || HOST_NAME.test(text),
    'must be an IP address, such as 0.0.0.0 or ::1, or a host name',
  );

export const ipRanges = z
  .string()
  .transform(itemsOf)
  .refine(areAddresses, 'must be IP addresses and CIDR ranges, comma separated, such as 10.0.0.0/8,::1');

function itemsOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** If a value is not such a URL, later checks are skipped. */
function urlOf(protocols: readonly string[], must: string) {
  return z
    .string()
    .trim()
    .refine((text) => isUrl(text, protocols), { error: must, abort: true });
}

/** White space and control characters are rejected: `URL` drops some of them, but other parsers do not. */
function isUrl(text: string, protocols: readonly string[]): boolean {
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) return false;
  const { protocol, hostname, port, username, password } = new URL(text);
  const isFile = protocol === 'file:';
  return (
    protocols.includes(protocol) &&
    text.startsWith(isFile ? 'file:///' : `${protocol}//`) &&
    (isFile || hostname !== '') &&
    port !== '0' &&
    [username, password].every((text) => percentDecoded(text) !== undefined)
  );
}

/** Whether a URL has a query or a fragment, even an empty one. */
function hasQueryOrFragment(url: string): boolean {
  return /[?#]/.test(url);
}

/** The Elasticsearch client takes the first credentials for all nodes, and ignores a user without a password. */
function shareCredentials(nodes: readonly string[]): boolean {
  const urls = nodes.map((node) => new URL(node));
  const isWhole = urls.every(({ username, password }) => (username === '') === (password === ''));
  return isWhole && new Set(urls.map(({ username, password }) => `${username}:${password}`)).size <= 1;
}

function areAddresses(items: string[]): boolean {
  try {
    proxyAddr.compile(items);
    return items.length > 0 && items.every(isAddress);
  } catch {
    return false;
  }
}

/** Length of the prefix of an IPv4-mapped IPv6 address (`::ffff:10.0.0.0`). */
const MAPPED_PREFIX_BITS = 96;

/**
 * Whether `proxy-addr` trusts exactly the given address or range. `proxy-addr` ignores a zone (`fe80::1%eth0`). It
 * reads `::ffff:10.0.0.0/8` as a range of IPv6 addresses, not as 10.0.0.0/8.
 */
function isAddress(item: string): boolean {
  const [address = '', bits] = item.split('/');
  if (isIP(address) === 0 || address.includes('%')) return false;
  const parsed = ipaddr.parse(address);
  const isMapped = parsed.kind() === 'ipv6' && (parsed as ipaddr.IPv6).isIPv4MappedAddress();
  return !isMapped || bits === undefined || Number(bits) > MAPPED_PREFIX_BITS;
}
