import type { IncomingMessage } from 'node:http';
import proxyAddr from 'proxy-addr';

/** Returns the absolute address at which the client of a request reaches the service, without a slash at the end. */
export type PublicUrlReader = (request: IncomingMessage) => string;

/** The address is `PUBLIC_URL`, else the scheme and host in the headers of a trusted proxy, else the host in `Host`. */
export function publicUrlReader(
  publicUrl: string | undefined,
  trustedProxies: readonly string[],
): PublicUrlReader {
  const configured = publicUrl?.replace(/\/+$/, '');
  const isTrusted = proxyAddr.compile([...trustedProxies]);
  return ({ headers, socket }) => {
    if (configured !== undefined) return configured;
    const host = headers.host ?? 'localhost';
    if (!isTrusted(socket.remoteAddress ?? '', 0)) return `http://${host}`;
    const scheme = lastOf(headers['x-forwarded-proto']) === 'https' ? 'https' : 'http';
    return `${scheme}://${lastOf(headers['x-forwarded-host']) ?? host}`;
  };
}

/** The last entry of a header, which the trusted proxy wrote. Clients can forge earlier entries. */
function lastOf(header: string | string[] | undefined): string | undefined {
  return header?.toString().split(',').at(-1)?.trim() || undefined;
}
