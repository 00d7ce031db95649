import { errors, type Client } from '@elastic/elasticsearch';

/** Timeout of asking for a key, in milliseconds: a scrape of the metrics waits for it. */
const TIMEOUT_MS = 1000;

/** The id of an API key, which is `<id>:<secret>` in base64. */
export function idOfKey(apiKey: string): string {
  return Buffer.from(apiKey, 'base64').toString().split(':')[0] ?? '';
}

/**
 * When the API key of a client expires, in milliseconds since the epoch. A key may ask for itself without any privilege.
 * @returns undefined if it does not expire, or Elasticsearch does not say: it is down, has no security, or rejects the key.
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
