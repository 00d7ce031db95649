import { errors, type Client, type estypes } from '@elastic/elasticsearch';

/** Timeout of the request for an expiration date, in milliseconds. A scrape of the metrics waits for the response. */
const TIMEOUT_MS = 1000;

/** The id in an API key. The key is `<id>:<secret>` in base64. */
export function idOfKey(apiKey: string): string {
  return Buffer.from(apiKey, 'base64').toString().split(':')[0] ?? '';
}

/**
 * In milliseconds since the epoch. A key needs no privilege to read its own expiration date.
 * @returns undefined if the key does not expire, or if Elasticsearch is down, has no security, or rejects the key.
 */
export async function expirationOfKey(
  client: Client,
  apiKey: string | undefined,
): Promise<number | undefined> {
  if (apiKey === undefined) return undefined;
  try {
    const options = { requestTimeout: TIMEOUT_MS, maxRetries: 0 };
    const { api_keys: keys } = await client.security.getApiKey({ id: idOfKey(apiKey) }, options);
    return keys[0]?.expiration;
  } catch (error) {
    if (error instanceof errors.ElasticsearchClientError) return undefined;
    throw error;
  }
}

export async function validKeys(client: Client, names: readonly string[]): Promise<estypes.SecurityApiKey[]> {
  const found = await Promise.all(
    names.map((name) => client.security.getApiKey({ name, active_only: true })),
  );
  return found.flatMap(({ api_keys: keys }) => keys);
}
