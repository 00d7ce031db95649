import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { etagOf } from './etag.js';
import { bodyResponse, type PreparedResponse, type ResponseVersion } from './prepared-response.js';

/** Memory of a cached response beside its key, its headers and its body: objects of the heap, measured on 20,000 of them. */
const OVERHEAD_BYTES = 1400;

/** A smaller body is not worth compressing: it fits into one packet. */
const MIN_COMPRESSED_BYTES = 1024;

/** Good compression at a tenth of the time that the best takes. */
const BROTLI_QUALITY = 5;

const compressors = {
  br: promisify((body: Buffer, done: (error: Error | null, result: Buffer) => void) =>
    brotliCompress(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }, done),
  ),
  gzip: promisify((body: Buffer, done: (error: Error | null, result: Buffer) => void) => gzip(body, done)),
};

export type Encoding = keyof typeof compressors;

/** The generation of the data that a response is made of. */
export interface ResponseSource {
  /** Its index, whose name no other generation has. */
  index: string;
  /** The id that clients know it by. */
  snapshot: string;
}

/** What a handler makes: JSON, or what `Content-Type` says, and its special headers. */
export interface RenderedResponse {
  /** 200 by default; with another one, the body is a problem. */
  status?: 404;
  body: Buffer;
  headers?: Record<string, string>;
}

/** An answer as it is kept, with the compressed responses that were asked for so far. */
export interface CachedResponse extends RenderedResponse {
  key: string;
  version: ResponseVersion;
  /** Without compression. */
  response: PreparedResponse;
  encoded: Map<Encoding, Promise<PreparedResponse>>;
  /** Of those that are there. */
  encodedBytes: number;
}

/** Where answers came from: kept, joined to an equal request under way, made; or not sent, as the client has them. */
export interface CacheCounts {
  hit: number;
  shared: number;
  miss: number;
  not_modified: number;
}

/**
 * Keeps the answers of one generation of the data, and of the next as soon as there is one: the key of an answer begins
 * with its generation, so that an old one is never served as new. Bounded in bytes; equal requests at the same time are
 * answered by one.
 */
export class ResponseCache {
  /** So far; `respond` counts what is not made here. */
  readonly counts: CacheCounts = { hit: 0, shared: 0, miss: 0, not_modified: 0 };
  readonly #entries: LRUCache<string, CachedResponse> | undefined;
  readonly #inFlight = new Map<string, Promise<CachedResponse>>();

  /** @param maxBytes of all answers together; 0 keeps none. */
  constructor(readonly maxBytes: number) {
    if (maxBytes === 0) return;
    this.#entries = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: sizeOf,
    });
  }

  /** Of all answers that are kept. */
  get bytes(): number {
    return this.#entries?.calculatedSize ?? 0;
  }

  /** The answer to `request` in `generation`, if it is kept. */
  get(generation: string, request: string): CachedResponse | undefined {
    return this.#entries?.get(keyOf(generation, request));
  }

  /** The response to `request`, created if it is not cached. Concurrent equal requests share one. Failures are not cached. */
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
          // A problem has a tag of its own: a 304 stands for what was a 200.
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
   * The response in an encoding; created once and cached beside the plain one. Undefined if the body is too small.
   * Failures are not cached.
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
    const body = exactCopy(await compressors[encoding](answer.body));
    const kept = this.#entries?.peek(answer.key);
    // It may have been dropped in the meantime. A copy, because the size of an equal object is not looked at again.
    if (kept?.body === answer.body) {
      this.#entries?.set(answer.key, { ...kept, encodedBytes: kept.encodedBytes + body.length });
    }
    return bodyResponse(answer.version, answer.response.status, body, {
      ...answer.headers,
      'Content-Encoding': encoding,
    });
  }
}

/** Node cuts small buffers out of slabs of 8 KiB, which would stay in memory as long as any of them. */
function unpooled(body: Buffer): Buffer {
  return body.buffer.byteLength === body.length ? body : exactCopy(body);
}

/** zlib returns a slice of a chunk of 16 KiB, all of which would stay in memory. */
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
