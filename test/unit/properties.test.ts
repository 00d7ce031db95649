import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { codePoints } from '../../src/unicode.js';
import { BYPASS_SECONDS, BypassTokens } from '../../src/http/bypass-token.js';
import { clientIpReader } from '../../src/http/client-ip.js';
import { parseParams } from '../../src/http/query-params.js';
import { browseParams } from '../../src/routes/browse.js';
import { searchParams } from '../../src/routes/search.js';
import { createLogger } from '../../src/log.js';
import { Problem } from '../../src/http/problem.js';
import { validateDataset } from '../../src/rebuild/validate.js';
import { readCsv } from '../../src/rebuild/csv.js';
import { DatasetError } from '../../src/rebuild/dataset-error.js';
import { readRows } from '../../src/rebuild/rows.js';
import { chunksOf, itemsOf, streamOf } from '../support/batches.js';
import { naiveCsv } from '../support/naive-csv.js';
import { toCsv } from '../support/datasets.js';

const text = (maxLength: number, minLength = 0) => fc.string({ unit: 'grapheme', minLength, maxLength });

/** Checks random inputs, and reports the smallest one that fails. */
async function forAll<T>(
  numRuns: number,
  inputs: fc.Arbitrary<T>,
  check: (input: T) => unknown,
): Promise<void> {
  const property = fc.asyncProperty(inputs, async (input) => {
    await check(input);
  });
  await fc.assert(property, { numRuns });
}

/** Properties that hold for thousands of random inputs. */
describe('Random input', function () {
  this.timeout(60_000);

  describe('as a dataset', () => {
    const log = createLogger('silent', false);

    /** Validates and reads a dataset that arrives in chunks of a size, as from a stream. */
    async function check(bytes: Uint8Array, size: number) {
      const chunks = chunksOf(Buffer.from(bytes), size);
      const rows = () => readRows(streamOf(chunks), 'https://registry.example/{name}');
      const { total } = await validateDataset(rows, { maxBadRows: 0, log, onRows: () => undefined });
      const read = (await itemsOf(rows())).flatMap((row) => ('entry' in row ? [row.entry] : []));
      return { total, read };
    }

    const name = text(40, 1).filter((name) => Buffer.byteLength(name) <= 512);
    const entries = fc
      .uniqueArray(fc.tuple(name, text(10, 1)), { selector: ([name]) => name, minLength: 1, maxLength: 40 })
      .map((list) =>
        list.map(([name, version], i) => ({
          no: i * 3 + 1,
          name,
          version,
          url: `https://registry.example/${i}`,
        })),
      );

    it('is read back as written if it is valid', async () => {
      await forAll(200, fc.tuple(entries, fc.integer({ min: 1, max: 200 })), async ([list, size]) => {
        const { total, read } = await check(Buffer.from(toCsv(list)), size);
        expect(total).to.equal(list.length);
        expect(read).to.deep.equal(list);
      });
    });

    it('is parsed as by a naive parser, however its bytes are split', async () => {
      const piece = fc.constantFrom(...'a|é|🚀| |"|"|""|,|\n|\r|\r\n|","|"\n|\ufeff'.split('|'));
      const csv = fc.array(piece, { maxLength: 60 }).map((pieces) => Buffer.from(pieces.join('')));
      const cuts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 20 });
      await forAll(5000, fc.tuple(csv, cuts), async ([bytes, sizes]) => {
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
    });

    it('is read, or rejected with a reason', async () => {
      const noise = fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.stringMatching(/^[ab",\r\n]{0,80}$/).map((csv) => Buffer.from(`name,version\n${csv}\n`)),
      );
      await forAll(500, fc.tuple(noise, fc.integer({ min: 1, max: 50 })), async ([bytes, size]) => {
        try {
          const { total, read } = await check(bytes, size);
          expect(read).to.have.length(total);
          for (const { name, url } of read) expect(URL.canParse(url) && name !== '').to.equal(true);
        } catch (error) {
          if (!(error instanceof DatasetError)) throw error;
          expect(error.message).not.to.equal('');
        }
      });
    });
  });

  describe('in X-Forwarded-For', () => {
    const read = clientIpReader(['10.0.0.0/8', 'fd00::/8']);
    const trusted = fc.constantFrom('10.0.0.1', 'fd00::1', '::ffff:10.1.1.1', '');
    const hops = fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), text(20), trusted), { maxLength: 6 });
    const from = (remoteAddress: string, hops: string[]) =>
      read({
        socket: { remoteAddress },
        headers: { 'x-forwarded-for': hops.join() },
      } as unknown as IncomingMessage);

    it('is ignored from an untrusted peer, and yields a valid address from a trusted one', () =>
      forAll(2000, hops, (list) => {
        expect(from('203.0.113.5', list)).to.include({ ip: '203.0.113.5', key: '203.0.113.5' });
        const { ip, peer } = from('10.9.9.9', list);
        expect(isIP(ip)).to.be.greaterThan(0);
        expect(peer).to.equal('10.9.9.9');
      }));

    it('cannot hide the client that trusted hops have seen', () => {
      const clients = fc.ipV4().filter((ip) => !ip.startsWith('10.'));
      return forAll(2000, fc.tuple(hops, clients), ([forged, ip]) => {
        const trustedHops = [ip, '10.0.0.2'];
        const seen = from('10.9.9.9', [...forged, ...trustedHops]);
        expect(seen).to.deep.include({ ip, key: ip, trustedHops });
      });
    });
  });

  describe('as a bypass token', () => {
    const NOW = 1_800_000_000;
    const at = (seconds: number) => new BypassTokens('change-me', 'registry', () => seconds * 1000);
    const good = at(NOW).issue();

    it('is rejected unless it was issued', () => {
      const signature = fc.stringMatching(/^[\w-]{43}$/);
      const character = fc.stringMatching(/^[\x20-\x7e]$/);
      const forged = fc.oneof(
        text(80),
        fc.tuple(fc.nat(2_000_000_000), signature).map((parts) => parts.join(':')),
        fc
          .tuple(fc.nat(good.length - 1), character)
          .map(([i, changed]) => good.slice(0, i) + changed + good.slice(i + 1)),
      );
      return forAll(5000, forged, (token) => {
        fc.pre(token !== good);
        expect(at(NOW).secondsLeft(token)).to.equal(0);
      });
    });

    it('is valid for the rest of its hour, at any age', () =>
      forAll(2000, fc.integer({ min: -10_000, max: 10_000 }), (age) => {
        const left = age < -5 || age >= BYPASS_SECONDS ? 0 : Math.min(BYPASS_SECONDS, BYPASS_SECONDS - age);
        expect(at(NOW + age).secondsLeft(good)).to.equal(left);
      }));
  });

  describe('as a query string', () => {
    const value = fc.oneof(
      text(120).map(encodeURIComponent),
      fc.stringMatching(/^[%&=;+a-f0-9]{0,30}$/),
      fc.nat().map(String),
    );
    const querystring = fc
      .array(fc.tuple(fc.constantFrom('q', 'limit', 'page', 'x', '__proto__'), value), { maxLength: 4 })
      .map((pairs) => pairs.map(([name, one]) => `${name}=${one}`).join('&'));

    it('is parsed within bounds, or rejected with the name of a parameter', () =>
      forAll(5000, querystring, (text) => {
        for (const schema of [searchParams, browseParams]) {
          try {
            const params = parseParams(schema, text);
            expect(params.limit).to.be.within(1, 500);
            if ('q' in params) expect(codePoints(params.q).length).to.be.within(2, 100);
            else expect(Number.isSafeInteger(params.page) && params.page >= 1).to.equal(true);
          } catch (error) {
            if (!(error instanceof Problem)) throw error;
            expect(error.status).to.equal(400);
            expect(error.message).to.match(/^(q|limit|page) /);
          }
        }
      }));
  });
});
