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

describe('enforceMinimumRate', () => {
  const trickle: Pieces = Array.from({ length: 20 }, () => [50, 100]);

  const transfers: [what: string, pieces: Pieces, consumerMs?: number][] = [
    ['passes on the minimum in each window with a small last piece', [[150, 10_240], [150, 10_240], [150, 10_240], [150, 1]]],
    ['passes on data that its consumer takes slowly', [[0, 5000], [460, 5000]], WINDOW_MS],
    ['fails if bytes trickle after the first window', [[0, 100_000], ...trickle]],
    ['fails if one byte less than the minimum arrives in time', [[0, 10_239], [500, 1]]],
  ]; // prettier-ignore
  for (const [title, pieces, consumerMs = 0] of transfers) {
    it(title, async () => {
      const limits = { windowMs: WINDOW_MS, signal: NEVER };
      const receive = async () => {
        let bytes = 0;
        for await (const chunk of enforceMinimumRate(Readable.from(generate(pieces)), limits)) {
          bytes += chunk.length;
          await pause(consumerMs);
        }
        return bytes;
      };
      if (title.startsWith('fails')) await rejects(receive(), TOO_SLOW);
      else expect(await receive()).to.equal(pieces.reduce((sum, [, bytes]) => sum + bytes, 0));
    });
  }
});
