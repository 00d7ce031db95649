import { compress, encodingFor, type Encoding } from './compression.js';
import { contentTag, matches } from './etag.js';
import type { Handler } from '../request/request-context.js';
import { shared, type BodyResponse } from './response.js';

/** A response that never changes. Each requested encoding is compressed once and kept in memory. */
export function constantResponse(response: BodyResponse, cacheControl: string): Handler {
  const validators = {
    ETag: contentTag(response.body),
    'Cache-Control': cacheControl,
    Vary: 'Accept-Encoding',
  };
  const plain = shared({ ...response, headers: { ...response.headers, ...validators } });
  const encoded: Partial<Record<Encoding, Promise<BodyResponse>>> = {};
  return ({ req }) => {
    if (matches(req.headers['if-none-match'], validators.ETag)) return { status: 304, headers: validators };
    const encoding = encodingFor(req.headers['accept-encoding']);
    return encoding === undefined ? plain : (encoded[encoding] ??= compress(plain, encoding, 11));
  };
}
