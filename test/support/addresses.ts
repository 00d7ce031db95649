import dns from 'node:dns';

/** Makes every host name resolve to these IPv4 addresses while `use` runs. */
export async function withAddresses<T>(addresses: string[], use: () => Promise<T>): Promise<T> {
  const { lookup } = dns;
  const found = addresses.map((address) => ({ address, family: 4 }));
  dns.lookup = ((_host: string, _options: object, done: (error: null, all: object[]) => void) =>
    done(null, found)) as unknown as typeof lookup;
  return use().finally(() => (dns.lookup = lookup));
}
