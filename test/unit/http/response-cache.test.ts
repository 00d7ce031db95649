import { randomBytes } from 'node:crypto';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { ResponseCache } from '../../../src/http/response-cache.js';

const G1 = { index: 'g1', snapshot: 's1' };

const body = (text: string) => ({ body: Buffer.from(text) });

describe('ResponseCache', () => {
  it('keeps an answer by its generation and its request', async () => {
    const cache = new ResponseCache(100_000);
    const made = await cache.getOrCreate(G1, 'search 250 redis', () => Promise.resolve(body('one')));
    expect(cache.get('g1', 'search 250 redis')).to.equal(made);
    expect(cache.get('g2', 'search 250 redis')).to.be.undefined;
    expect(cache.get('g1', 'search 500 redis')).to.be.undefined;
  });

  it('makes an answer once for all who ask for it at the same time', async () => {
    for (const maxBytes of [0, 100_000]) {
      const cache = new ResponseCache(maxBytes);
      let made = 0;
      const make = async () => {
        made++;
        await new Promise(setImmediate);
        return body('one');
      };
      const answers = await Promise.all(Array.from({ length: 10 }, () => cache.getOrCreate(G1, 'r', make)));
      expect(made).to.equal(1);
      expect(new Set(answers).size).to.equal(1);
    }
  });

  it('tells a failure to all who wait, and keeps nothing of it', async () => {
    const cache = new ResponseCache(100_000);
    const fail = () => Promise.reject(new Error('broken'));
    const outcomes = await Promise.allSettled([
      cache.getOrCreate(G1, 'r', fail),
      cache.getOrCreate(G1, 'r', fail),
    ]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    expect(
      (await cache.getOrCreate(G1, 'r', () => Promise.resolve(body('mended')))).body.toString(),
    ).to.equal('mended');
  });

  it('keeps no more of a small body than its bytes, where it keeps any', async () => {
    const make = () => Promise.resolve(body('small'));
    const { body: kept } = await new ResponseCache(100_000).getOrCreate(G1, 'r', make);
    expect(kept.toString()).to.equal('small');
    expect(kept.buffer.byteLength).to.equal(kept.length);
    const { body: sent } = await new ResponseCache(0).getOrCreate(G1, 'r', make);
    expect(sent.buffer.byteLength).to.be.greaterThan(sent.length);
  });

  it('keeps no more of a compressed body than its bytes', async () => {
    const cache = new ResponseCache(100_000);
    const made = await cache.getOrCreate(G1, 'r', () => Promise.resolve(body('a name '.repeat(1000))));
    for (const encoding of ['br', 'gzip'] as const) {
      const response = await cache.encode(made, encoding);
      expect(response?.body?.length).to.be.within(10, 200);
      expect(response?.body?.buffer.byteLength).to.equal(response?.body?.length);
    }
  });

  it('compresses again after a failure', async () => {
    const cache = new ResponseCache(100_000);
    const made = await cache.getOrCreate(G1, 'r', () => Promise.resolve(body('a name '.repeat(1000))));
    const unusable = { ...made, body: { length: 7000 } as unknown as Buffer };
    await cache.encode(unusable, 'gzip')?.then(
      () => expect.fail('compressed what is no buffer'),
      (error: unknown) => expect(error).to.be.an('error'),
    );
    expect((await cache.encode(made, 'gzip'))?.status).to.equal(200);
  });

  it('keeps nothing at 0 bytes', async () => {
    const cache = new ResponseCache(0);
    await cache.getOrCreate(G1, 'r', () => Promise.resolve(body('one')));
    expect(cache.get('g1', 'r')).to.be.undefined;
  });

  it('is bounded in bytes, compressed bodies included, and drops what was not asked for longest', async () => {
    const cache = new ResponseCache(50_000);
    // Does not compress: what is kept beside it is as large as itself.
    const noise = randomBytes(10_000);
    for (const request of ['a', 'b', 'c'])
      await cache.getOrCreate(G1, request, () => Promise.resolve({ body: noise }));
    const kept = cache.get('g1', 'b');
    if (kept === undefined) throw new Error('not kept');
    await cache.encode(kept, 'gzip');
    expect(cache.get('g1', 'a'), 'four bodies are not too many').not.to.be.undefined;
    await cache.encode(kept, 'br');
    const left = ['a', 'b', 'c'].filter((request) => cache.get('g1', request) !== undefined);
    expect(left, 'five are').to.deep.equal(['a', 'b']);
  });

  it('compresses once, and only what is worth it', async () => {
    const cache = new ResponseCache(100_000);
    const long = await cache.getOrCreate(G1, 'long', () => Promise.resolve(body('abc'.repeat(1000))));
    const [first, second] = [cache.encode(long, 'gzip'), cache.encode(long, 'gzip')];
    expect(first).to.equal(second);
    expect(gunzipSync((await first)?.body ?? '').equals(long.body)).to.be.true;
    const br = await cache.encode(long, 'br');
    expect(brotliDecompressSync(br?.body ?? '').equals(long.body)).to.be.true;
    const short = await cache.getOrCreate(G1, 'short', () => Promise.resolve(body('abc')));
    expect(cache.encode(short, 'gzip')).to.be.undefined;
  });
});
