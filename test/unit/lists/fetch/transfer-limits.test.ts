import { rejects } from 'node:assert/strict';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { enforceMinimumRate } from '../../../../src/lists/fetch/transfer-limits.js';

const WINDOW_MS = 400;
const NEVER = new AbortController().signal;
const TOO_SLOW = {
  name: 'DatasetError',
  message: 'the dataset could not be downloaded: fewer than 10240 bytes arrived within 0.4 s',
};

type Pieces = [pauseMs: number, bytes: number][];

/** Sends each piece after its pause, and ends. */
async function* generate(pieces: Pieces): AsyncGenerator<Buffer> {
  for (const [pauseMs, bytes] of pieces) {
    await pause(pauseMs);
    yield Buffer.alloc(bytes);
  }
}

/** Takes `consumerMs` for each chunk. @returns the number of bytes. */
async function bytesOf(chunks: AsyncIterable<Buffer>, consumerMs = 0): Promise<number> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    await pause(consumerMs);
  }
  return bytes;
}

describe('enforceMinimumRate', () => {
  const trickle: Pieces = Array.from({ length: 20 }, () => [50, 100]);

  const transfers: [what: string, pieces: Pieces, consumerMs?: number][] = [
    ['passes on the minimum in each window with a small last piece', [[150, 10_240], [150, 10_240], [150, 10_240], [150, 1]]],
    ['passes on data that its consumer takes slowly', [[0, 5000], [460, 5000]], WINDOW_MS],
    ['fails if bytes trickle after the first window', [[0, 100_000], ...trickle]],
    ['fails if one byte less than the minimum arrives in time', [[0, 10_239], [500, 1]]],
  ]; // prettier-ignore
  for (const [title, pieces, consumerMs] of transfers) {
    it(title, async () => {
      const source = Readable.from(generate(pieces));
      const received = bytesOf(
        enforceMinimumRate(source, { windowMs: WINDOW_MS, signal: NEVER }),
        consumerMs,
      );
      if (title.startsWith('fails')) await rejects(received, TOO_SLOW);
      else expect(await received).to.equal(pieces.reduce((sum, [, bytes]) => sum + bytes, 0));
    });
  }
});
