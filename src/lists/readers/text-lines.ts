import { isUtf8 } from 'node:buffer';
import { DatasetError } from '../fetch/dataset-error.js';

/** Maximum length of a line, in bytes. It limits memory. A line with all versions of a package is shorter. */
const MAX_LINE_BYTES = 16 * 2 ** 20;

const LF = 0x0a;
const BYTE_ORDER_MARK = '\uFEFF';

export const NOT_UTF8 = 'not valid UTF-8';
/** Replaces invalid bytes. */
export const REPLACEMENT = '\uFFFD';
export const BARE_RETURNS = 'lines end with CR alone: end them with LF or CRLF';

/** Consecutive lines. */
export interface Lines {
  /** Number of the first line, from 1. */
  first: number;
  /** The lines without line feeds. The carriage return of a CRLF is kept. */
  texts: string[];
  /** Indexes of the lines that are not valid UTF-8. In their texts, U+FFFD replaces the invalid bytes. */
  invalid: ReadonlySet<number>;
  /** True if the document does not end with a line feed, and `texts` has only its last line. */
  isUnterminated: boolean;
}

/**
 * Reads the lines of a text in UTF-8, without its byte order mark.
 * @param hint is appended to the message about a line that is too long.
 * @throws {DatasetError} naming a line that is too long.
 */
export async function* readLines(
  source: AsyncIterable<Buffer>,
  maxBytes = MAX_LINE_BYTES,
  hint = '',
): AsyncGenerator<Lines> {
  let first = 1;
  /** Chunks of the line that has not ended yet, and their total size. */
  let pieces: Buffer[] = [];
  let bytes = 0;
  const linesIn = (block: Buffer, isUnterminated: boolean) => {
    const lines = { first, texts: block.toString().split('\n'), invalid: invalidIn(block), isUnterminated };
    const { texts } = lines;
    if (first === 1 && texts[0]?.startsWith(BYTE_ORDER_MARK) === true) texts[0] = texts[0].slice(1);
    const tooLong = block.length > maxBytes ? byteLines(block).findIndex((one) => one.length > maxBytes) : -1;
    if (tooLong !== -1) refuse(tooLong, texts[tooLong] as string);
    first += texts.length;
    return lines;
  };
  const refuse = (index: number, text: string): never => {
    const reason = hasBareReturns(text) ? BARE_RETURNS : `longer than ${maxBytes} bytes${hint}`;
    throw new DatasetError(`line ${first + index}: ${reason}`);
  };
  for await (const chunk of source) {
    const end = chunk.lastIndexOf(LF);
    if (end !== -1) {
      // Only whole lines are decoded, so no character is split.
      yield linesIn(Buffer.concat([...pieces, chunk.subarray(0, end)]), false);
      pieces = [];
      bytes = 0;
    }
    const rest = chunk.subarray(end + 1);
    pieces.push(rest);
    bytes += rest.length;
    if (bytes > maxBytes) refuse(0, Buffer.concat(pieces).toString());
  }
  if (bytes > 0) yield linesIn(Buffer.concat(pieces), true);
}

/** The lines as Latin-1, in which a byte is a character. */
function byteLines(block: Buffer): string[] {
  return block.toString('latin1').split('\n');
}

/**
 * Reads the lines of a list that must end with a line end.
 * @throws {DatasetError} if the last line has no line end: the list may be cut off.
 */
export async function* readWholeLines(source: AsyncIterable<Buffer>): AsyncGenerator<Lines> {
  for await (const lines of readLines(source)) {
    if (lines.isUnterminated) {
      const reason = hasBareReturns(lines.texts[0] as string)
        ? BARE_RETURNS
        : 'does not end with a line end, so the list may be cut off';
      throw new DatasetError(`line ${lines.first}: ${reason}`);
    }
    yield lines;
  }
}

/**
 * Maps lines to items.
 * @param toItem gets a line, its number, and whether it is invalid UTF-8. Returns undefined if the line has no item.
 */
export async function* mapLines<T>(
  source: AsyncIterable<Lines>,
  toItem: (text: string, at: number, isInvalid: boolean) => T | undefined,
): AsyncGenerator<T[]> {
  for await (const { first, texts, invalid } of source) {
    const items: T[] = [];
    for (const [i, text] of texts.entries()) {
      const item = toItem(text, first + i, invalid.has(i));
      if (item !== undefined) items.push(item);
    }
    yield items;
  }
}

/** Whether a line has a carriage return before its last character. A last carriage return may belong to a CRLF. */
export function hasBareReturns(line: string): boolean {
  return line.slice(0, -1).includes('\r');
}

/** The indexes of the lines in a block that are not valid UTF-8. */
function invalidIn(block: Buffer): ReadonlySet<number> {
  if (isUtf8(block)) return new Set();
  return new Set(byteLines(block).flatMap((line, i) => (isUtf8(Buffer.from(line, 'latin1')) ? [] : [i])));
}
