import { rejects } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { CHUNK_BYTES, gunzip, isGzip } from '../../../../src/lists/fetch/decompress.js';

async function textOf(source: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of gunzip(source)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Yields each chunk after a pause in which zlib handles the one before. */
async function* slowly(...chunks: (Buffer | Error)[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) {
    await pause(5);
    if (chunk instanceof Error) throw chunk;
    yield chunk;
  }
}

describe('gzip', () => {
  const zipped = gzipSync('some text');

  it('is recognised by its first two bytes', () => {
    expect(isGzip(zipped)).to.equal(true);
    expect(isGzip(zipped.subarray(0, 2))).to.equal(true);
    for (const other of ['', '\x1f', 'ab', 'some text']) expect(isGzip(Buffer.from(other))).to.equal(false);
  });

  it('is decompressed in chunks of a fixed size', async () => {
    const lengths: number[] = [];
    const source = slowly(gzipSync(Buffer.alloc(2 * CHUNK_BYTES + 1)));
    for await (const chunk of gunzip(source)) lengths.push(chunk.length);
    expect(lengths).to.deep.equal([CHUNK_BYTES, CHUNK_BYTES, 1]);
  });

  it('may be followed by zeros, also in further chunks, and by nothing else', async () => {
    const zeros = Buffer.alloc(10);
    expect(await textOf(slowly(zipped, zeros, zeros))).to.equal('some text');
    const text = Buffer.from('x');
    for (const chunks of [
      [Buffer.concat([zipped, zeros]), zeros, text],
      [zipped, zeros, text],
      [zipped, zeros, zipped],
    ]) {
      await rejects(textOf(slowly(...chunks)), {
        name: 'DatasetError',
        message: 'the gzip is cut off or damaged: its end is followed by other data',
      });
    }
  });

  it('that is damaged has the error of zlib as cause', async () => {
    const damaged = Buffer.from(zipped).fill(0, 12, 16);
    const error: unknown = await textOf(slowly(damaged)).catch((thrown: unknown) => thrown);
    expect(error).to.have.property('name', 'DatasetError');
    expect(error).to.have.nested.property('cause.code', 'Z_DATA_ERROR');
  });

  it('whose source fails ends with that error', async () => {
    const broken = Object.assign(new Error('the disk is broken'), { code: 'EIO' });
    await rejects(textOf(slowly(zipped.subarray(0, 12), broken)), broken);
    const nameless = new Error('stopped');
    await rejects(textOf(slowly(nameless)), nameless);
  });

  it('is not read on once its reader has stopped', async () => {
    const source = slowly(gzipSync(randomBytes(8 * CHUNK_BYTES)), zipped);
    let isEnded = false;
    async function* watched() {
      try {
        yield* source;
      } finally {
        isEnded = true;
      }
    }
    for await (const chunk of gunzip(watched())) {
      expect(chunk).to.have.length(CHUNK_BYTES);
      break;
    }
    await pause(50);
    expect(isEnded).to.equal(true);
  });
});
