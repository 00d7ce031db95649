import { randomBytes } from 'node:crypto';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { ResponseCache } from '../../../src/read/response-cache.js';
import { bodyResponse, type BodyResponse } from '../../../src/http/response/response.js';

const response = (text: string) => bodyResponse(Buffer.from(text));

/** Creates and stores a response with this body. */
const store = (cache: ResponseCache, key: string, text: string) =>
  cache.create(key, () => Promise.resolve(response(text)));

describe('ResponseCache', () => {
  it('stores a response by its key', async () => {
    const cache = new ResponseCache(100_000);
    const made = await store(cache, 'g1 search 250 redis', 'one');
    expect(cache.get('g1 search 250 redis')).to.equal(made);
    expect(cache.get('g2 search 250 redis')).to.equal(undefined);
    expect(cache.get('g1 search 500 redis')).to.equal(undefined);
    expect(cache.counts).to.include({ shared: 0, miss: 1 });
  });

  it('creates a response once for concurrent requests', async () => {
    for (const maxBytes of [0, 100_000]) {
      const cache = new ResponseCache(maxBytes);
      let made = 0;
      const make = async () => {
        made++;
        await new Promise(setImmediate);
        return response('one');
      };
      const answers = await Promise.all(Array.from({ length: 10 }, () => cache.create('r', make)));
      expect(made).to.equal(1);
      expect(new Set(answers).size).to.equal(1);
      expect(cache.counts).to.include({ hit: 0, shared: 9, miss: 1 });
    }
  });

  it('passes a failure to all waiting requests without storing it', async () => {
    const cache = new ResponseCache(100_000);
    const fail = () => Promise.reject(new Error('broken'));
    const outcomes = await Promise.allSettled([1, 2].map(() => cache.create('r', fail)));
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    expect((await store(cache, 'r', 'second')).body.toString()).to.equal('second');
  });

  it('stores a small body in a buffer of its exact size', async () => {
    const { body: kept } = await store(new ResponseCache(100_000), 'r', 'small');
    expect(kept.toString()).to.equal('small');
    expect(kept.buffer.byteLength).to.equal(kept.length);
    const off = new ResponseCache(0);
    const { body: sent } = await store(off, 'r', 'small');
    expect(sent.buffer.byteLength).to.be.greaterThan(sent.length);
    expect(off.get('r')).to.equal(undefined);
  });

  it('limits its size in bytes, including compressed bodies, by evicting the least recently used response', async () => {
    const cache = new ResponseCache(50_000);
    // Incompressible: each compressed body is as large as the original.
    const noise = randomBytes(10_000);
    const make = () => Promise.resolve(bodyResponse(noise));
    const [, kept] = await Promise.all(['a', 'b', 'c'].map((key) => cache.create(key, make)));
    await cache.inEncoding('b', kept as BodyResponse, 'gzip');
    expect(cache.get('a'), 'four bodies fit').not.to.equal(undefined);
    expect(cache.get('b')).not.to.equal(undefined);
    await cache.inEncoding('b', kept as BodyResponse, 'br');
    expect(cache.bytes).to.be.at.most(50_000);
    expect(cache.get('c'), 'five bodies do not fit').to.equal(undefined);
    for (const key of ['a', 'b']) expect(cache.get(key)).not.to.equal(undefined);
  });

  it('compresses a long response once into a buffer of its exact size', async () => {
    for (const maxBytes of [0, 100_000]) {
      const cache = new ResponseCache(maxBytes);
      const long = await store(cache, 'long', 'abc'.repeat(1000));
      const variants = [1, 2].map(async () => cache.inEncoding('long', long, 'gzip'));
      const [gzip, same] = await Promise.all(variants);
      expect(gzip).to.equal(same);
      const br = await cache.inEncoding('long', long, 'br');
      expect(gunzipSync(gzip?.body ?? '').equals(long.body)).to.equal(true);
      expect(brotliDecompressSync(br.body).equals(long.body)).to.equal(true);
      for (const { body } of [gzip as BodyResponse, br]) expect(body.buffer.byteLength).to.equal(body.length);
      const short = await store(cache, 'short', 'abc');
      expect(cache.inEncoding('short', short, 'gzip')).to.equal(short);
    }
  });
});
