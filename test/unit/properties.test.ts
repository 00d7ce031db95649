import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { clientAddressReader } from '../../src/http/request/client-address.js';
import { readCsv } from '../../src/lists/readers/csv-records.js';
import { DatasetError } from '../../src/lists/fetch/dataset-error.js';
import { chunksOf, itemsOf, streamOf } from '../support/batches.js';
import { naiveCsv } from '../support/naive-csv.js';
import { toCsv } from '../support/datasets.js';
import { readRows } from '../support/rows.js';

const text = (maxLength: number) => fc.string({ unit: 'grapheme', minLength: 1, maxLength });

/** Properties that hold for thousands of random inputs. */
describe('A random dataset', function () {
  this.timeout(60_000);

  /** Checks and reads a dataset that arrives in chunks of a size, as from a stream. */
  async function check(bytes: Uint8Array, size: number) {
    const chunks = chunksOf(Buffer.from(bytes), size);
    const rows = await readRows(chunks, 'https://registry.example/{name}');
    const read = rows.flatMap((row) => ('entry' in row ? [row.entry] : []));
    return { total: rows.length, read };
  }

  const name = text(40).filter(
    (name) => Buffer.byteLength(name) <= 512 && name === name.trim() && !/[\p{Cc}\p{Cf}]/u.test(name),
  );
  const entries = fc
    .uniqueArray(fc.tuple(name, text(10)), { selector: ([name]) => name, minLength: 1, maxLength: 40 })
    .map((list) =>
      list.map(([name, version], i) => ({
        no: i * 3 + 1,
        name,
        version,
        url: `https://registry.example/${i}`,
      })),
    );

  it('is read back as written if it is valid', async () => {
    const property = fc.asyncProperty(entries, fc.integer({ min: 1, max: 200 }), async (list, size) => {
      const { total, read } = await check(Buffer.from(toCsv(list)), size);
      expect(total).to.equal(list.length);
      expect(read).to.deep.equal(list);
    });
    await fc.assert(property, { numRuns: 200 });
  });

  it('is parsed as by a naive parser, however its bytes are split', async () => {
    const piece = fc.constantFrom(...'a|é|🚀| |"|"|""|,|\n|\r|\r\n|","|"\n|\ufeff'.split('|'));
    const csv = fc.array(piece, { maxLength: 60 }).map((pieces) => Buffer.from(pieces.join('')));
    const cuts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 20 });
    const property = fc.asyncProperty(csv, cuts, async (bytes, sizes) => {
      const pieces: Buffer[] = [];
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const size = sizes[i % sizes.length] as number;
        pieces.push(bytes.subarray(at, at + size));
        at += size;
      }
      const records = await itemsOf(readCsv(streamOf(pieces)));
      const read = records.map((record) =>
        'fields' in record ? record : { line: record.line, fields: undefined },
      );
      expect(read).to.deep.equal(naiveCsv(bytes.toString()));
    });
    await fc.assert(property, { numRuns: 5000 });
  });

  it('is read, or rejected with a reason', async () => {
    const noise = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.stringMatching(/^[ab",\r\n]{0,80}$/).map((csv) => Buffer.from(`name,version\n${csv}\n`)),
    );
    const property = fc.asyncProperty(noise, fc.integer({ min: 1, max: 50 }), async (bytes, size) => {
      try {
        const { total, read } = await check(bytes, size);
        expect(read.length).to.be.at.most(total);
        for (const { name, url } of read) expect(URL.canParse(url) && name !== '').to.equal(true);
      } catch (error) {
        if (!(error instanceof DatasetError)) throw error;
        expect(error.message).not.to.equal('');
      }
    });
    await fc.assert(property, { numRuns: 500 });
  });
});

describe('Random addresses in X-Forwarded-For', () => {
  const read = clientAddressReader(['10.0.0.0/8', 'fd00::/8']);
  const trusted = fc.constantFrom('10.0.0.1', 'fd00::1', '::ffff:10.1.1.1', '');
  const hops = fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), text(20), trusted), { maxLength: 6 });
  const from = (remoteAddress: string, hops: string[]) => {
    const headers = { 'x-forwarded-for': hops.join() };
    return read({ socket: { remoteAddress }, headers } as unknown as IncomingMessage);
  };

  it('yield a valid address if they are from a trusted peer', () => {
    const property = fc.property(hops, (list) => {
      expect(from('203.0.113.5', list)).to.include({ ip: '203.0.113.5', key: '203.0.113.5' });
      const { ip, peer } = from('10.9.9.9', list);
      expect(isIP(ip)).to.be.greaterThan(0);
      expect(peer).to.equal('10.9.9.9');
    });
    fc.assert(property, { numRuns: 2000 });
  });

  it('cannot hide the client that trusted hops have seen', () => {
    const clients = fc.ipV4().filter((ip) => !ip.startsWith('10.'));
    const property = fc.property(hops, clients, (forged, ip) => {
      const trustedHops = [ip, '10.0.0.2'];
      expect(from('10.9.9.9', [...forged, ...trustedHops])).to.deep.include({ ip, key: ip, trustedHops });
    });
    fc.assert(property, { numRuns: 2000 });
  });
});
