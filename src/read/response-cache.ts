import { LRUCache } from 'lru-cache';
import { compress, exactCopy, type Encoding } from '../http/response/compression.js';
import { shared, type BodyResponse } from '../http/response/response.js';

/** Heap overhead of a response beyond its key, header values and body, in bytes; measured with 20,000 responses. */
const OVERHEAD_BYTES = 1600;

/** Smaller bodies are not compressed: they fit into one packet. */
const MIN_BYTES_TO_COMPRESS = 1024;

/** Caches responses and their compressed variants. Concurrent requests for a response share its creation. */
export class ResponseCache {
  /** Responses by outcome; `shared`: with an equal request in flight. The caller counts `hit` and `not_modified`. */
  readonly counts = { hit: 0, shared: 0, miss: 0, not_modified: 0 };
  readonly #entries: LRUCache<string, BodyResponse> | undefined;
  readonly #inFlight = new Map<string, Promise<BodyResponse>>();

  /** @param maxBytes maximum size of all cached responses; 0 disables the cache. */
  constructor(readonly maxBytes: number) {
    if (maxBytes === 0) return;
    this.#entries = new LRUCache({ maxSize: maxBytes, sizeCalculation: sizeOf });
  }

  get bytes(): number {
    return this.#entries?.calculatedSize ?? 0;
  }

  get(key: string): BodyResponse | undefined {
    return this.#entries?.get(key);
  }

  /** Creates a response that is missing in the cache, and caches it unless the creation fails. */
  create(key: string, make: () => Promise<BodyResponse>): Promise<BodyResponse> {
    this.counts[this.#inFlight.has(key) ? 'shared' : 'miss']++;
    return this.#create(key, make);
  }

  /** Compresses the response, unless it is small or the compressed variant is cached. */
  inEncoding(key: string, response: BodyResponse, encoding: Encoding): BodyResponse | Promise<BodyResponse> {
    if (response.body.length < MIN_BYTES_TO_COMPRESS) return response;
    const encodedKey = `${encoding} ${key}`;
    const kept = this.#entries?.get(encodedKey);
    return kept ?? this.#create(encodedKey, () => compress(response, encoding, 5));
  }

  #create(key: string, make: () => Promise<BodyResponse>): Promise<BodyResponse> {
    let pending = this.#inFlight.get(key);
    if (pending === undefined) {
      pending = this.#store(key, make).finally(() => this.#inFlight.delete(key));
      this.#inFlight.set(key, pending);
    }
    return pending;
  }

  async #store(key: string, make: () => Promise<BodyResponse>): Promise<BodyResponse> {
    const response = await make();
    if (this.#entries === undefined) return response;
    const kept = shared({ ...response, body: unpooled(response.body) });
    this.#entries.set(key, kept);
    return kept;
  }
}

/** Copies a body that is a slice of one of Node's slabs (`Buffer.poolSize`): the cache would keep the whole slab. */
function unpooled(body: Buffer): Buffer {
  return body.buffer.byteLength === body.length ? body : exactCopy(body);
}

function sizeOf({ body, headers }: BodyResponse, key: string): number {
  const headerBytes = Object.values(headers).reduce((sum, value) => sum + value.length, 0);
  return OVERHEAD_BYTES + 2 * key.length + headerBytes + body.length;
}
