import { LRUCache } from 'lru-cache';
import { compress, type Encoding } from './compression.js';
import { etagOf } from './etag.js';
import { bodyResponse, type PreparedResponse, type ResponseVersion } from './prepared-response.js';

/** Heap overhead of a cached response beyond its key, headers and body, measured on 20,000 of them. */
const OVERHEAD_BYTES = 1400;

/** Smaller bodies are not compressed: they fit into one packet. */
const MIN_COMPRESSED_BYTES = 1024;

/** The generation that a response is built from. */
export interface ResponseSource {
  /** Its index name, unique to the generation. */
  index: string;
  /** Its id in responses. */
  snapshot: string;
}

/** The result of a handler: a body, which is JSON unless `Content-Type` differs, and its special headers. */
export interface RenderedResponse {
  /** 200 by default; otherwise the body is a problem. */
  status?: 404;
  body: Buffer;
  headers?: Record<string, string>;
}

/** A cached response with the compressed variants requested so far. */
export interface CachedResponse extends RenderedResponse {
  key: string;
  version: ResponseVersion;
  /** Uncompressed. */
  response: PreparedResponse;
  encoded: Map<Encoding, Promise<PreparedResponse>>;
  /** Total size of the finished compressed variants. */
  encodedBytes: number;
}

/** Responses by origin: cached, shared with an equal request in flight, created, or 304. */
export interface CacheCounts {
  hit: number;
  shared: number;
  miss: number;
  not_modified: number;
}

/**
 * Caches responses, bounded in bytes. Keys begin with the generation, so that an old response is never served
 * for a new generation. Concurrent equal requests share one response.
 */
export class ResponseCache {
  /** Counts so far; `respondFromCache` counts `hit` and `not_modified`. */
  readonly counts: CacheCounts = { hit: 0, shared: 0, miss: 0, not_modified: 0 };
  readonly #entries: LRUCache<string, CachedResponse> | undefined;
  readonly #inFlight = new Map<string, Promise<CachedResponse>>();

  /** @param maxBytes maximum size of all cached responses; 0 disables the cache. */
  constructor(readonly maxBytes: number) {
    if (maxBytes === 0) return;
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: sizeOf,
    });
  }

  /** Size of all cached responses. */
  get bytes(): number {
    return this.#entries?.calculatedSize ?? 0;
  }

  /** The cached response to `request` in `generation`. */
  get(generation: string, request: string): CachedResponse | undefined {
    return this.#entries?.get(keyOf(generation, request));
  }

  /**
   * The response to `request`, created if it is not cached. Concurrent equal requests share one. Failures are
   * not cached.
   */
  getOrCreate(
    { index, snapshot }: ResponseSource,
    request: string,
    create: () => Promise<RenderedResponse>,
  ): Promise<CachedResponse> {
    const key = keyOf(index, request);
    let pending = this.#inFlight.get(key);
    if (pending !== undefined) this.counts.shared++;
    else {
      this.counts.miss++;
      pending = create()
        .then((answer) => {
          const { status = 200, body, headers = {} } = answer;
          // A problem has another tag: a 304 must refer to a 200.
          const etag = etagOf(index, status === 200 ? request : `${status} ${request}`);
          const version = { etag, snapshot };
          const ownBody = this.#entries === undefined ? body : unpooled(body);
          const response = bodyResponse(version, status, ownBody, headers);
          const kept = {
            ...answer,
            body: ownBody,
            key,
            version,
            response,
            encoded: new Map<Encoding, Promise<PreparedResponse>>(),
            encodedBytes: 0,
          };
          this.#entries?.set(key, kept);
          return kept;
        })
        .finally(() => this.#inFlight.delete(key));
      this.#inFlight.set(key, pending);
    }
    return pending;
  }

  /**
   * The response in an encoding; created once and cached beside the plain one. Undefined if the body is too
   * small. Failures are not cached.
   */
  encode(answer: CachedResponse, encoding: Encoding): Promise<PreparedResponse> | undefined {
    if (answer.body.length < MIN_COMPRESSED_BYTES) return undefined;
    let response = answer.encoded.get(encoding);
    if (response === undefined) {
      response = this.#compress(answer, encoding).catch((error: unknown) => {
        answer.encoded.delete(encoding);
        throw error;
      });
      answer.encoded.set(encoding, response);
    }
    return response;
  }

  async #compress(answer: CachedResponse, encoding: Encoding): Promise<PreparedResponse> {
    const body = exactCopy(await compress(answer.body, encoding, 'quick'));
    const kept = this.#entries?.peek(answer.key);
    // The entry may have been evicted. A copy, because the cache does not measure the same object again.
    if (kept?.body === answer.body) {
      this.#entries?.set(answer.key, { ...kept, encodedBytes: kept.encodedBytes + body.length });
    }
    return bodyResponse(answer.version, answer.response.status, body, {
      ...answer.headers,
      'Content-Encoding': encoding,
    });
  }
}

/** Node allocates small buffers from slabs of 8 KiB, which stay in memory as long as any of their buffers. */
function unpooled(body: Buffer): Buffer {
  return body.buffer.byteLength === body.length ? body : exactCopy(body);
}

/** zlib returns a slice of a 16 KiB chunk, which would stay in memory as a whole. */
function exactCopy(slice: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(slice.length);
  slice.copy(copy);
  return copy;
}

function keyOf(generation: string, request: string): string {
  return `${generation} ${request}`;
}

function sizeOf({ body, headers = {}, encodedBytes }: CachedResponse, key: string): number {
  const headerBytes = Object.values(headers).reduce((sum, value) => sum + value.length, 0);
  return OVERHEAD_BYTES + 2 * key.length + headerBytes + body.length + encodedBytes;
}
