declare module 'proxy-from-env' {
  /** The proxy of an address by the usual variables; empty without one. */
  export function getProxyForUrl(url: string | URL): string;
}
