import { rejects } from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { enforceMinimumRate, limitBytes } from '../../../src/rebuild/transfer-limits.js';

const WINDOW_MS = 200;
const NEVER = new AbortController().signal;
const TOO_SLOW = {
  name: 'DatasetError',
  message: 'the dataset could not be downloaded: fewer than 10240 bytes arrived within 0.2 s',
};

/** Sends each piece after its pause, and ends. */
function source(...pieces: [pauseMs: number, bytes: number][]): Readable {
  return Readable.from(
    (async function* () {
      for (const [pauseMs, bytes] of pieces) {
        await pause(pauseMs);
        yield Buffer.alloc(bytes);
      }
    })(),
  );
}

async function bytesOf(chunks: AsyncIterable<Buffer>): Promise<number> {
  let bytes = 0;
  for await (const chunk of chunks) bytes += chunk.length;
  return bytes;
}

function received(...pieces: [pauseMs: number, bytes: number][]): Promise<number> {
  return bytesOf(enforceMinimumRate(source(...pieces), { windowMs: WINDOW_MS, signal: NEVER }));
}

describe('enforceMinimumRate', () => {
  it('passes on data that arrives fast enough', async () => {
    expect(await received()).to.equal(0);
    expect(await received([0, 1])).to.equal(1);
    expect(await received([120, 10_240], [120, 10_240], [120, 10_240], [120, 1])).to.equal(30_721);
    expect(await received([50, 100], [50, 10_140], [120, 1_000_000], [120, 5])).to.equal(1_010_245);
  });

  it('fails if nothing arrives', async () => {
    const silent = new PassThrough();
    await rejects(bytesOf(enforceMinimumRate(silent, { windowMs: WINDOW_MS, signal: NEVER })), TOO_SLOW);
    silent.destroy();
  });

  it('fails if bytes trickle, during and after the first window', async () => {
    const trickle = Array.from({ length: 20 }, (): [number, number] => [50, 100]);
    await rejects(received(...trickle), TOO_SLOW);
    await rejects(received([0, 100_000], ...trickle), TOO_SLOW);
    await rejects(received([0, 10_239], [250, 1]), TOO_SLOW);
  });

  it('does not count the time that the consumer takes', async () => {
    let bytes = 0;
    const pieces = Array.from({ length: 4 }, (): [number, number] => [0, 5000]);
    for await (const chunk of enforceMinimumRate(source(...pieces), { windowMs: WINDOW_MS, signal: NEVER })) {
      await pause(1.5 * WINDOW_MS);
      bytes += chunk.length;
    }
    expect(bytes).to.equal(20_000);
  });

  it('fails at once when aborted, before and while it waits', async () => {
    const silent = new PassThrough();
    const reason = new Error('the server is stopping');
    const signals = [AbortSignal.abort(reason), new AbortController().signal];
    const late = new AbortController();
    signals[1] = late.signal;
    setTimeout(() => late.abort(reason), 50);
    for (const signal of signals) {
      await rejects(bytesOf(enforceMinimumRate(silent, { windowMs: 60_000, signal })), reason);
    }
    silent.destroy();
  });

  it('passes on an error of the source', async () => {
    const failing = new PassThrough();
    setTimeout(() => failing.destroy(new Error('the connection was reset')), 20);
    await rejects(
      bytesOf(enforceMinimumRate(failing, { windowMs: 60_000, signal: NEVER })),
      /connection was reset/,
    );
  });
});

describe('limitBytes', () => {
  it('passes on bytes up to the limit, and fails at one more', async () => {
    expect(await bytesOf(limitBytes(1000, source([0, 400], [0, 600])))).to.equal(1000);
    await rejects(bytesOf(limitBytes(1000, source([0, 400], [0, 601]))), {
      name: 'DatasetError',
      message: 'the dataset is larger than 1000 bytes',
    });
  });
});
