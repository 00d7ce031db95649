/**
 * `fetch` through a proxy. As in downloads, http uses no tunnel, because many proxies reject tunnels to ports other
 * than 443. Exception: if the address of the proxy itself is https, undici always uses a tunnel. Uses undici, because
 * Node does not export the agent of its own `fetch`. Loads undici on demand, because loading takes 0.1 s.
 */
export async function proxiedFetch(proxy: URL): Promise<typeof fetch> {
  const undici = await import('undici');
  const dispatcher = new undici.ProxyAgent({ uri: proxy.href, proxyTunnel: false });
  const send: unknown = (url: URL, init: object) => undici.fetch(url, { ...init, dispatcher });
  // The types of Node's own undici have a different version.
  return send as typeof fetch;
}
