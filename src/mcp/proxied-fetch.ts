/**
 * `fetch` by a proxy, as for downloads: with a tunnel for https alone, since proxies refuse one to other ports. Node does not
 * export the agent of its own `fetch`. Loading undici takes 0.1 s, so that it is loaded only when it is needed.
 */
export async function proxiedFetch(proxy: URL): Promise<typeof fetch> {
  const undici = await import('undici');
  const dispatcher = new undici.ProxyAgent({ uri: proxy.href, proxyTunnel: false });
  const send: unknown = (url: URL, init: object) => undici.fetch(url, { ...init, dispatcher });
  // The types of Node's own copy are of another version.
  return send as typeof fetch;
}
