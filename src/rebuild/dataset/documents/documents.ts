import { writeFile, type FileHandle } from 'node:fs/promises';
import type { OutgoingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { quote } from '../../process/reason-text.js';
import { DatasetError, UnavailableError } from '../dataset-error.js';
import { describeFailure } from '../describe-failure.js';
import { openNamelessFile } from '../nameless-file.js';
import type { Authorization } from '../http-request.js';
import { openFile, openHttp, type DatasetOrigin, type Validators } from '../origin.js';
import { chunksOf } from '../text.js';
import { limitByFreeSpace, limitBytes, untilAborted, type Transfer } from '../transfer-limits.js';
import { decompress } from './decompress.js';
import { Document, InterruptedError, type Sizes } from './document.js';

/** How often a document is asked for. With the pauses between, a server has 7 s to restart. */
const ATTEMPTS = 4;
/** Pause before the second attempt, in milliseconds; it doubles. */
const PAUSE_MS = 1000;
/** An origin that asks for a longer pause, in seconds, is not waited for: the next refresh asks again. */
const MAX_RETRY_AFTER_SECONDS = 300;

/** The only document is the known one, by its validators. */
export class UnchangedError extends Error {
  override readonly name = 'UnchangedError';
}

export interface DocumentsOptions {
  transfer: Transfer;
  /** Validators of the served dataset. */
  known?: Validators | undefined;
  authorization?: Authorization | undefined;
  /** Maximum size of all documents together, and of their text, in bytes. */
  maxBytes: number;
  /** Free space reserved for others, in bytes. */
  reservedBytes: number;
  /** Pause before the second attempt, in milliseconds. */
  pauseMs?: number | undefined;
}

/** The documents of a list: one, or pages, or several files. They are opened one after the other. */
export class Documents {
  #opened = 0;
  #origin: DatasetOrigin | undefined;
  #document: Document | undefined;
  #newest: Date | undefined;
  #place = '';
  readonly #sizes: Sizes;

  /** @param urls the configured addresses. */
  constructor(
    readonly urls: readonly [string, ...string[]],
    private readonly options: DocumentsOptions,
  ) {
    this.#sizes = { max: options.maxBytes, bytes: 0, textBytes: 0 };
  }

  /** Where the last document is in the list, such as `page 3`; empty if it is the whole list. */
  get place(): string {
    return this.#place;
  }

  /** The time of the newest document; undefined if no document has one. */
  get takenAt(): Date | undefined {
    const dates = [this.#newest, this.#document?.takenAt].filter((date) => date !== undefined);
    return dates.length === 0 ? undefined : new Date(Math.max(...dates.map((date) => date.getTime())));
  }

  /** Undefined if the origin sent none, or there were several documents: any of them may change. */
  get validators(): Validators | undefined {
    return this.#opened === 1 ? this.#origin?.validators : undefined;
  }

  /**
   * Opens the next document, and tries again while its origin is unavailable.
   * @throws {UnchangedError} @throws {DatasetError}
   */
  async open(url: string, place = '', headers?: OutgoingHttpHeaders): Promise<Document> {
    this.#place = place;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#open(url, headers);
      } catch (error) {
        await this.#pauseAfter(error, attempt);
      }
    }
  }

  /**
   * Reads a document, and again if its transfer is interrupted.
   * @param read must not yield again what it has yielded before, unless that makes no difference.
   */
  async *reread<T>(read: () => AsyncIterable<T>): AsyncGenerator<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        yield* read();
        return;
      } catch (error) {
        if (!(error instanceof InterruptedError)) throw error;
        await this.#pauseAfter(error, attempt);
      }
    }
  }

  /** Stores a document, as it is sent, in a file that disappears when it is closed. */
  async store(document: Document): Promise<FileHandle> {
    const file = await openNamelessFile();
    try {
      await writeFile(file, limitByFreeSpace(document.bytes(), tmpdir(), this.options.reservedBytes));
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** The text of a stored document, decompressed. Can be read again. */
  textOf(file: FileHandle): AsyncIterable<Buffer> {
    const { maxBytes, transfer } = this.options;
    return limitBytes(maxBytes, untilAborted(decompress(chunksOf(file)), transfer.signal));
  }

  /**
   * Resolves an address in a document, and adds the user and password of the configured one.
   * @throws {DatasetError} if it leads to another origin, or out of the folder of a file.
   */
  resolve(reference: string, { url: base }: Document): string {
    if (!URL.canParse(reference, base)) throw new DatasetError(`${quote(reference)} is not an address`);
    const url = new URL(reference, base);
    const configured = new URL(this.urls[0]);
    if (configured.protocol === 'file:') {
      // Clients of /rebuild see the message, so the address is only in the cause, for the log.
      if (!url.href.startsWith(new URL('.', base).href))
        throw new DatasetError('an address in it leads out of the folder', { cause: new Error(url.href) });
      return url.href;
    }
    // `blob:` has the origin of the address in it.
    const origin = /^https?:$/.test(url.protocol) ? url.origin : url.protocol;
    const origins = [...new Set([configured.origin, new URL(base).origin])];
    if (!origins.includes(origin))
      throw new DatasetError(`an address in it leads to ${origin} instead of ${origins.join(' or ')}`);
    if (url.origin === configured.origin && url.username === '') {
      url.username = configured.username;
      url.password = configured.password;
    }
    return url.href;
  }

  /** Ends the transfer of the last document. */
  close(): void {
    this.#origin?.body.destroy();
  }

  async #open(url: string, headers?: OutgoingHttpHeaders): Promise<Document> {
    this.close();
    this.#newest = this.takenAt;
    const { transfer, known, authorization } = this.options;
    const isLocal = url.startsWith('file:');
    try {
      this.#origin = isLocal
        ? await openFile(url)
        : await openHttp(url, transfer, { known, authorization, headers });
    } catch (error) {
      if (isLocal || transfer.signal.aborted || error instanceof DatasetError) throw error;
      throw new UnavailableError(describeFailure(error as Error), undefined, { cause: error });
    }
    if (this.#origin === undefined) throw new UnchangedError('the document has not changed');
    this.#opened++;
    this.#document = new Document(this.#origin, transfer, this.#sizes);
    return this.#document;
  }

  /** @throws the error if another attempt is useless. */
  async #pauseAfter(error: unknown, attempt: number): Promise<void> {
    if (!(error instanceof UnavailableError) || attempt === ATTEMPTS) throw error;
    const { retryAfterSeconds = 0 } = error;
    if (retryAfterSeconds > MAX_RETRY_AFTER_SECONDS) throw error;
    const { transfer, pauseMs = PAUSE_MS } = this.options;
    const ms = Math.max(retryAfterSeconds * 1000, pauseMs * 2 ** (attempt - 1));
    await pause(ms, undefined, { signal: transfer.signal });
  }
}
