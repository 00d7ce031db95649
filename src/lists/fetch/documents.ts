import type { FileHandle } from 'node:fs/promises';
import type { OutgoingHttpHeaders } from 'node:http';
import { addAbortSignal } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { quote } from '../../util/reason-text.js';
import { DatasetError, describeFailure, OriginUnavailableError } from './dataset-error.js';
import { firstPlausibleDate, gzipDate } from './dates.js';
import type { Validators } from '../../snapshot/snapshot-meta.js';
import { setCredentials, type Transfer } from './http-request.js';
import { openFile, openHttp, type DocumentOrigin, type HttpOptions } from './origin.js';
import { chunksOf } from './temporary-file.js';
import { decompress, peek } from './decompress.js';

/**
 * Maximum number of attempts to open a document, and of attempts to read it. With the pauses between them, a server has
 * 7 s to restart.
 */
const ATTEMPTS = 4;
/** Pause before the second attempt, in milliseconds. Each later pause is twice as long. */
const PAUSE_MS = 1000;
/** Maximum pause that an origin may ask for, in seconds. If it asks for a longer one, no more attempts are made. */
const MAX_RETRY_AFTER_SECONDS = 300;

/** The only document has not changed, according to its validators. */
export class UnchangedError extends Error {
  override readonly name = 'UnchangedError';
}

/** A document was not received to its end. */
export class InterruptedError extends OriginUnavailableError {}

export interface DocumentsOptions extends Omit<HttpOptions, 'configured' | 'headers'> {
  transfer: Transfer;
  /** Maximum size of all documents together, and of their text, in bytes. */
  maxBytes: number;
  /** Pause before the second attempt, in milliseconds. */
  pauseMs?: number | undefined;
  /** Name of the documents, for messages about a local file; by default `the dataset`. */
  what?: string | undefined;
}

/** Sizes of all documents of a list together, so far. */
type Sizes = Record<'bytes' | 'textBytes', number>;

/** A document that is being transferred. It can be read once. */
export class Document {
  #gzipDate: Date | undefined;
  /** The date that its text states. */
  statedDate: Date | undefined;

  constructor(
    readonly origin: DocumentOrigin,
    private readonly options: DocumentsOptions,
    private readonly sizes: Sizes,
  ) {}

  /** When the document was made; undefined if this is unknown. */
  get takenAt(): Date | undefined {
    const { lastModified, date } = this.origin;
    return firstPlausibleDate(lastModified, this.statedDate, this.#gzipDate, date);
  }

  /** The bytes of the document, not decompressed. @throws {InterruptedError} */
  async *bytes(): AsyncGenerator<Buffer> {
    const { transfer } = this.options;
    try {
      const { start, chunks } = await peek(addAbortSignal(transfer.signal, this.origin.body));
      this.#gzipDate = gzipDate(start);
      yield* limited(chunks, this.options, this.sizes, 'bytes');
      await this.origin.assertUnchanged?.();
    } catch (error) {
      transfer.signal.throwIfAborted();
      if (error instanceof DatasetError && !(error instanceof OriginUnavailableError)) throw error;
      const reason = error instanceof DatasetError ? error.message : describeFailure(error as Error);
      throw new InterruptedError(reason, undefined, { cause: error });
    }
  }

  /** Its text, decompressed. */
  text(): AsyncGenerator<Buffer> {
    return limited(decompress(this.bytes()), this.options, this.sizes, 'textBytes');
  }
}

/** The documents of a list: one, or pages, or several files. They are opened one after the other. */
export class Documents {
  #opened = 0;
  #document: Document | undefined;
  #newest: Date | undefined;
  #place = '';
  readonly #sizes: Sizes = { bytes: 0, textBytes: 0 };

  /** @param urls the configured addresses. */
  constructor(
    readonly urls: readonly [string, ...string[]],
    private readonly options: DocumentsOptions,
  ) {}

  /** The place of the last opened document in the list, such as `page 3`; empty if the document is the whole list. */
  get place(): string {
    return this.#place;
  }

  /** The time of the newest document; undefined if no document has one. */
  get takenAt(): Date | undefined {
    const dates = [this.#newest, this.#document?.takenAt].filter((date) => date !== undefined);
    return dates.length === 0 ? undefined : new Date(Math.max(...dates.map((date) => date.getTime())));
  }

  /**
   * Validators of the only document; undefined if the origin sent none. Also undefined if several documents were
   * opened, because any of them may change, or if the document was opened again.
   */
  get validators(): Validators | undefined {
    return this.#opened === 1 ? this.#document?.origin.validators : undefined;
  }

  /**
   * Opens the next document, and tries again while its origin is unavailable.
   * @throws {UnchangedError} @throws {DatasetError}
   */
  async open(url = this.urls[0], place = '', headers?: OutgoingHttpHeaders): Promise<Document> {
    this.#place = place;
    const opened = await this.#retry(OriginUnavailableError, () => [this.#open(url, headers)]).next();
    return opened.value as Document;
  }

  /**
   * Reads a document, and reads it again if the transfer is interrupted.
   * @param read must not repeat items that it has yielded before, unless repeated items make no difference.
   * @returns the result of `read`.
   */
  reread<T, R>(read: () => AsyncGenerator<T, R>): AsyncGenerator<T, R> {
    return this.#retry(InterruptedError, read);
  }

  /** The text of a stored document, decompressed. Each call reads the file from the beginning. */
  textOf(file: FileHandle): AsyncIterable<Buffer> {
    return limited(decompress(chunksOf(file)), this.options);
  }

  /**
   * Resolves an address in a document. It gets the credentials of the document or of a configured address, if it has
   * the same origin.
   * @throws {DatasetError} if the address has neither the configured origin nor the origin of the document, or if it
   * leads out of the folder of a local document.
   */
  resolve(reference: string, { origin: { address: base } }: Document): string {
    if (!URL.canParse(reference, base)) throw new DatasetError(`${quote(reference)} is not an address`);
    const url = new URL(reference, base);
    const configured = new URL(this.urls[0]);
    if (configured.protocol === 'file:') {
      // Clients of /rebuild see the message, so the address is only in the cause, for the log.
      if (!url.href.startsWith(new URL('.', base).href))
        throw new DatasetError('an address in the document leads out of its folder', {
          cause: new Error(url.href),
        });
      return url.href;
    }
    // `url.origin` of `blob:https://host/…` would be `https://host`.
    const origin = /^https?:$/.test(url.protocol) ? url.origin : url.protocol;
    const origins = [...new Set([configured.origin, new URL(base).origin])];
    if (!origins.includes(origin))
      throw new DatasetError(
        `an address in the document leads to ${origin} instead of ${origins.join(' or ')}`,
      );
    setCredentials(url, [base, ...this.urls]);
    return url.href;
  }

  /** Ends the transfer of the last document. Errors from now on concern the whole list, not one document. */
  close(): void {
    this.#place = '';
    this.#document?.origin.body.destroy();
  }

  async #open(url: string, headers?: OutgoingHttpHeaders): Promise<Document> {
    this.#document?.origin.body.destroy();
    this.#newest = this.takenAt;
    const { transfer, maxBytes, what } = this.options;
    const isLocal = url.startsWith('file:');
    let origin: DocumentOrigin | undefined;
    try {
      origin = isLocal
        ? await openFile(url, what)
        : await openHttp(url, transfer, { ...this.options, configured: this.urls, headers });
    } catch (error) {
      if (isLocal || transfer.signal.aborted || error instanceof DatasetError) throw error;
      throw new OriginUnavailableError(describeFailure(error as Error), undefined, { cause: error });
    }
    if (origin === undefined) throw new UnchangedError('the document has not changed');
    this.#opened++;
    this.#document = new Document(origin, this.options, this.#sizes);
    if ((origin.bytes ?? 0) > maxBytes) throw tooLarge(maxBytes);
    return this.#document;
  }

  /**
   * Yields the items of `read`. Calls `read` again after an error of the class `kind`, unless no attempts are left or
   * the origin asks for too long a pause.
   */
  async *#retry<T, R>(
    kind: typeof OriginUnavailableError,
    read: () => AsyncIterable<T, R> | Iterable<Promise<T>, R>,
  ): AsyncGenerator<T, R> {
    for (let attempt = 1; ; attempt++) {
      try {
        return yield* read();
      } catch (error) {
        if (!(error instanceof kind) || attempt === ATTEMPTS) throw error;
        const { retryAfterSeconds = 0 } = error;
        if (retryAfterSeconds > MAX_RETRY_AFTER_SECONDS) throw error;
        const { transfer, pauseMs = PAUSE_MS } = this.options;
        const ms = Math.max(retryAfterSeconds * 1000, pauseMs * 2 ** (attempt - 1));
        await pause(ms, undefined, { signal: transfer.signal });
      }
    }
  }
}

/**
 * Passes chunks on.
 * @throws {DatasetError} if their total size exceeds `maxBytes`.
 * @throws the reason of the signal if the signal aborts.
 */
async function* limited(
  chunks: AsyncIterable<Buffer>,
  { maxBytes, transfer }: DocumentsOptions,
  sizes: Sizes = { bytes: 0, textBytes: 0 },
  what: keyof Sizes = 'textBytes',
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    // A source that never waits does not notice the signal.
    transfer.signal.throwIfAborted();
    sizes[what] += chunk.length;
    if (what === 'bytes') transfer.onBytes?.(sizes.bytes);
    if (sizes[what] > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
}

function tooLarge(maxBytes: number): DatasetError {
  return new DatasetError(`the dataset is larger than ${maxBytes} bytes`);
}
