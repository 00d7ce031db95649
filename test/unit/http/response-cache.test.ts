import { randomBytes } from 'node:crypto';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { ResponseCache } from '../../../src/http/response-cache.js';

const G1 = { index: 'g1', snapshot: 's1' };

const body = (text: string) => ({ body: Buffer.from(text) });

/** Stores a response with this body. */
const store = (cache: ResponseCache, request: string, text: string) =>
  cache.getOrCreate(G1, request, () => Promise.resolve(body(text)));

describe('ResponseCache', () => {
  it('stores a response by generation and request', async () => {
    const cache = new ResponseCache(100_000);
    const made = await store(cache, 'search 250 redis', 'one');
    expect(cache.get('g1', 'search 250 redis')).to.equal(made);
    expect(cache.get('g2', 'search 250 redis')).to.be.undefined;
    expect(cache.get('g1', 'search 500 redis')).to.be.undefined;
  });

  it('creates a response once for concurrent requests', async () => {
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

  it('passes a failure to all waiting requests, and does not store it', async () => {
    const cache = new ResponseCache(100_000);
    const fail = () => Promise.reject(new Error('broken'));
    const outcomes = await Promise.allSettled([1, 2].map(() => cache.getOrCreate(G1, 'r', fail)));
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    expect((await store(cache, 'r', 'second')).body.toString()).to.equal('second');
  });

  it('stores a small body in a buffer of its exact size, and nothing at 0 bytes', async () => {
    const { body: kept } = await store(new ResponseCache(100_000), 'r', 'small');
    expect(kept.toString()).to.equal('small');
    expect(kept.buffer.byteLength).to.equal(kept.length);
    const off = new ResponseCache(0);
    const { body: sent } = await store(off, 'r', 'small');
    expect(sent.buffer.byteLength).to.be.greaterThan(sent.length);
    expect(off.get('g1', 'r')).to.be.undefined;
  });

  it('compresses again after a failure', async () => {
    const cache = new ResponseCache(100_000);
    const made = await store(cache, 'r', 'a name '.repeat(1000));
    const unusable = { ...made, body: { length: 7000 } as unknown as Buffer };
    await cache.encode(unusable, 'gzip')?.then(
      () => expect.fail('compressed something that is not a buffer'),
      (error: unknown) => expect(error).to.be.an('error'),
    );
    expect((await cache.encode(made, 'gzip'))?.status).to.equal(200);
  });

  it('limits its size in bytes, including compressed bodies, by evicting the least recently used response', async () => {
    const cache = new ResponseCache(50_000);
    // Incompressible: each compressed body is as large as the original.
    const noise = randomBytes(10_000);
    for (const request of ['a', 'b', 'c'])
      await cache.getOrCreate(G1, request, () => Promise.resolve({ body: noise }));
    const kept = cache.get('g1', 'b');
    if (kept === undefined) throw new Error('not kept');
    await cache.encode(kept, 'gzip');
    expect(cache.get('g1', 'a'), 'four bodies fit').not.to.be.undefined;
    await cache.encode(kept, 'br');
    const left = ['a', 'b', 'c'].filter((request) => cache.get('g1', request) !== undefined);
    expect(left, 'five bodies do not fit').to.deep.equal(['a', 'b']);
  });

  it('compresses a response once, into a buffer of its exact size, and only if it is long enough', async () => {
    const cache = new ResponseCache(100_000);
    const long = await store(cache, 'long', 'abc'.repeat(1000));
    const [first, second] = [cache.encode(long, 'gzip'), cache.encode(long, 'gzip')];
    expect(first).to.equal(second);
    const bytesOf = async (encoding: 'gzip' | 'br') =>
      (await cache.encode(long, encoding))?.body ?? long.body;
    const [gzip, br] = [await bytesOf('gzip'), await bytesOf('br')];
    expect(gunzipSync(gzip).equals(long.body)).to.be.true;
    expect(brotliDecompressSync(br).equals(long.body)).to.be.true;
    for (const bytes of [gzip, br]) expect(bytes.buffer.byteLength).to.equal(bytes.length);
    expect(cache.encode(await store(cache, 'short', 'abc'), 'gzip')).to.be.undefined;
  });
});
