import { isUtf8 } from 'node:buffer';
import { DatasetError } from '../dataset-error.js';

/** Maximum length of a line, in bytes: longer than the list of all versions of any package, short enough for the memory. */
const MAX_LINE_BYTES = 16 * 2 ** 20;

const LF = 0x0a;
const BYTE_ORDER_MARK = '\uFEFF';

/** A line without its line feed, and its number from 1. A carriage return before the line feed is kept. */
export interface Line {
  no: number;
  text: string;
}

interface LineOptions {
  /** Whether the last line may have no line feed. Otherwise the text counts as cut off. */
  lastLineMayBeOpen: boolean;
  /** Whether a line that is not UTF-8 is passed on, with U+FFFD in place of what is wrong. Otherwise it is an error. */
  isLossy?: boolean;
}

/**
 * Reads the lines of a text in UTF-8, in batches.
 * @throws {DatasetError} naming the line.
 */
export async function* readLines(
  source: AsyncIterable<Buffer>,
  { lastLineMayBeOpen, isLossy = false }: LineOptions,
): AsyncGenerator<Line[]> {
  let no = 0;
  let rest: Buffer = Buffer.alloc(0);
  const linesIn = (block: Buffer) => {
    if (!isLossy && !isUtf8(block))
      throw new DatasetError(`line ${no + 1 + validLines(block)}: not valid UTF-8`);
    return block
      .toString()
      .split('\n')
      .map((text) => ({ text: ++no === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text, no }));
  };
  for await (const chunk of source) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = bytes.lastIndexOf(LF);
    rest = bytes.subarray(end + 1);
    // Whole lines, so that no character is split.
    if (end !== -1) yield linesIn(bytes.subarray(0, end));
    if (rest.length > MAX_LINE_BYTES) {
      throw new DatasetError(`line ${no + 1}: longer than ${MAX_LINE_BYTES} bytes`);
    }
  }
  if (rest.length === 0) return;
  if (!lastLineMayBeOpen) {
    throw new DatasetError(`line ${no + 1}: does not end with a line end, so the list may be cut off`);
  }
  yield linesIn(rest);
}

/** The number of lines of a block before the first one that is not valid. */
function validLines(block: Buffer): number {
  let lines = 0;
  for (let start = 0; ; lines++) {
    const end = block.indexOf(LF, start);
    if (end === -1 || !isUtf8(block.subarray(start, end))) return lines;
    start = end + 1;
  }
}
