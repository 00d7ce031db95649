import { rejects } from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { gunzip } from '../../../../src/lists/fetch/decompress.js';

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

  it('may be followed by nothing but zeros, also in further chunks', async () => {
    const zeros = Buffer.alloc(10);
    expect(await textOf(slowly(zipped, zeros, zeros))).to.equal('some text');
    const text = Buffer.from('x');
    for (const chunks of [
      [Buffer.concat([zipped, zeros]), zeros, text],
      [zipped, zeros, text],
      [zipped, zeros, zipped],
      [Buffer.concat([zipped, zeros, zipped])],
    ]) {
      await rejects(textOf(slowly(...chunks)), {
        name: 'DatasetError',
        message: 'the gzip is cut off or damaged: its end is followed by other data',
      });
    }
  });

  it('whose source fails ends with that error', async () => {
    const broken = Object.assign(new Error('the disk is broken'), { code: 'EIO' });
    await rejects(textOf(slowly(zipped.subarray(0, 12), broken)), broken);
    const nameless = new Error('stopped');
    await rejects(textOf(slowly(nameless)), nameless);
  });
});
