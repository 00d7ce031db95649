/**
 * `fetch` through a proxy, like downloads: with a tunnel only for https, because proxies reject tunnels to other ports.
 * Node does not export the agent of its own `fetch`. undici is loaded on demand, because that takes 0.1 s.
 */
export async function proxiedFetch(proxy: URL): Promise<typeof fetch> {
  const undici = await import('undici');
  const dispatcher = new undici.ProxyAgent({ uri: proxy.href, proxyTunnel: false });
  const send: unknown = (url: URL, init: object) => undici.fetch(url, { ...init, dispatcher });
  // The types of Node's own undici have a different version.
  return send as typeof fetch;
}
