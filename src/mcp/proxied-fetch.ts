/**
 * `fetch` through a proxy. As in downloads, requests to http addresses use no tunnel, because many proxies reject
 * tunnels to ports other than 443. Exception: if the address of the proxy is https, undici always uses a tunnel. The
 * `fetch` is from the undici package, because Node does not export the agent of its own `fetch`. The package is loaded
 * on demand, because loading takes 0.1 s.
 */
export async function proxiedFetch(proxy: URL): Promise<typeof fetch> {
  const undici = await import('undici');
  const dispatcher = new undici.ProxyAgent({ uri: proxy.href, proxyTunnel: false });
  const send: unknown = (url: URL, init: object) => undici.fetch(url, { ...init, dispatcher });
  // Node's types of `fetch` are from another version of undici.
  return send as typeof fetch;
}
