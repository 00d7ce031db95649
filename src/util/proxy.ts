import { BlockList, isIP } from 'node:net';

/**
 * The proxy in the environment cannot be used. The message names the environment variable. It omits the value, because
 * the value may contain a password.
 */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
}

/**
 * The proxy for a URL, from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`. Variables in lower case take
 * precedence, as in curl. A proxy without a scheme is an `http://` address. Undefined if no proxy is set, or `NO_PROXY`
 * excludes the URL. Implemented here, because no library supports networks in `NO_PROXY`.
 * @throws {ProxyError}
 */
export function proxyOf(url: URL, env: NodeJS.ProcessEnv = process.env): URL | undefined {
  const valueOf = (name: string) => env[name]?.trim() ?? '';
  const setOf = (...names: string[]) =>
    names.flatMap((name) => [name.toLowerCase(), name]).find((name) => valueOf(name) !== '');
  const variable = setOf(`${url.protocol.slice(0, -1).toUpperCase()}_PROXY`, 'ALL_PROXY');
  if (variable === undefined || isExcluded(url, valueOf(setOf('NO_PROXY') ?? ''))) return undefined;
  const value = valueOf(variable);
  const [, scheme] = /^([a-z][a-z\d+.-]*):\/\//i.exec(value) ?? [];
  const address = scheme === undefined ? `http://${value}` : value;
  if (/^https?:\/\//i.test(address) && URL.canParse(address)) return new URL(address);
  const reason = scheme === undefined || /^https?$/i.test(scheme) ? '' : `: ${scheme}:// is not supported`;
  throw new ProxyError(`the proxy in ${variable} is not an http(s) address${reason}`);
}

/** An entry is `*`, an IP address, a network or a domain, with an optional port. */
function isExcluded({ protocol, hostname, port }: URL, noProxy: string): boolean {
  const host = hostname.replace(/^\[|[\].]$/g, '');
  const hostPort = port || (protocol === 'https:' ? '443' : '80');
  const entries = noProxy.toLowerCase().split(/[\s,]+/);
  return entries.some((entry) => {
    const [name = '', entryPort = hostPort] = isIP(entry) === 0 ? entry.split(/:(?=\d+$)/) : [entry];
    if (entryPort !== hostPort) return false;
    if (name === '*') return true;
    return isIP(host) === 0 ? isWithinDomain(host, name) : isWithinNetwork(host, name);
  });
}

/** With or without a leading dot, a domain includes its subdomains. With a leading `*.`, only the subdomains match. */
function isWithinDomain(host: string, name: string): boolean {
  const domain = name.replace(/^\*?\.|\.$/g, '');
  return host.endsWith(`.${domain}`) || (host === domain && !name.startsWith('*'));
}

/** @param name a network such as `10.0.0.0/8`, or an IP address. Brackets around the address are ignored. */
function isWithinNetwork(host: string, name: string): boolean {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d+))?$/.exec(name.replace(/[[\]]/g, '')) ?? [];
  const longest = isIP(address) === 6 ? 128 : 32;
  const prefix = Number(bits ?? longest);
  if (isIP(address) === 0 || prefix > longest) return false;
  const network = new BlockList();
  network.addSubnet(address, prefix, familyOf(address));
  return network.check(host, familyOf(host));
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
