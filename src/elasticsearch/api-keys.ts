import { setTimeout as pause } from 'node:timers/promises';
import { errors, type Client, type estypes } from '@elastic/elasticsearch';
import { UNAVAILABLE_STATUSES } from '../util/http-response.js';

/** Timeout of the request for an expiration date, in milliseconds. A scrape of the metrics waits for the response. */
const TIMEOUT_MS = 1000;

/** Maximum wait, in milliseconds. After the first start of Elasticsearch, listing keys fails for some seconds. */
const LISTING_TIMEOUT_MS = 60_000;
/** Pause between two attempts to list keys, in milliseconds. */
const LISTING_PAUSE_MS = 250;

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

/**
 * Retries while Elasticsearch responds with 502, 503 or 504. After its first start, it responds with 503 until its
 * security index is ready.
 * @throws {Error} with a message of one line if it still does after `timeoutMs`. Other errors are thrown at once.
 */
export async function validKeys(
  client: Client,
  names: readonly string[],
  timeoutMs = LISTING_TIMEOUT_MS,
): Promise<estypes.SecurityApiKey[]> {
  const began = performance.now();
  for (;;) {
    try {
      const found = await Promise.all(
        names.map((name) => client.security.getApiKey({ name, active_only: true })),
      );
      return found.flatMap(({ api_keys: keys }) => keys);
    } catch (error) {
      const status = error instanceof errors.ResponseError ? error.statusCode : undefined;
      if (status === undefined || !UNAVAILABLE_STATUSES.includes(status)) throw error;
      if (performance.now() - began >= timeoutMs) {
        const reason = `Elasticsearch cannot list API keys: it responded with ${status} for ${timeoutMs / 1000} seconds`;
        throw new Error(reason, { cause: error });
      }
    }
    await pause(LISTING_PAUSE_MS);
  }
}
