import { Readable } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import type { PackageEntry } from '../../src/search/package-document.js';
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
import { naiveCsv } from '../support/naive-csv.js';
import { toCsv } from '../support/datasets.js';

const text = (maxLength: number) => fc.string({ unit: 'grapheme', maxLength });

/** Properties that hold for thousands of random inputs. */
describe('Random input', function () {
  this.timeout(60_000);

  describe('as a dataset', () => {
    /** Validates and reads a dataset that arrives in pieces, as from a stream. */
    async function check(pieces: Buffer[]) {
      const rows = () => readRows(Readable.from(pieces), 'https://registry.example/{name}');
      const log = createLogger('silent', false);
      const { total } = await validateDataset(rows, { maxBadRows: 0, log, onRows: () => undefined });
      const read: PackageEntry[] = [];
      for await (const batch of rows()) {
        for (const row of batch) if ('entry' in row) read.push(row.entry);
      }
      return { total, read };
    }

    const cut = (bytes: Buffer, size: number) =>
      Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );

    const entries = fc
      .uniqueArray(
        fc.record({
          name: text(40).filter((name) => name !== '' && Buffer.byteLength(name) <= 512),
          version: text(10),
        }),
        { selector: ({ name }) => name, minLength: 1, maxLength: 40 },
      )
      .map(
        (list) =>
        list.map(({ name, version }, i) => ({ no: i * 3 + 1, name, version: version || 'latest', url: `https://registry.example/${i}` })), // prettier-ignore
      );

    it('is read back as written if it is valid', async () => {
      await fc.assert(
        fc.asyncProperty(entries, fc.integer({ min: 1, max: 200 }), async (list, size) => {
          const { total, read } = await check(cut(Buffer.from(toCsv(list)), size));
          expect(total).to.equal(list.length);
          expect(read).to.deep.equal(list);
        }),
        { numRuns: 500 },
      );
    });

    it('is parsed as by a naive parser, however its bytes are split', async () => {
      const piece = fc.constantFrom(
        'a',
        'é',
        '🚀',
        ' ',
        '"',
        '"',
        '""',
        ',',
        '\n',
        '\r',
        '\r\n',
        '","',
        '"\n',
        '\ufeff',
      );
      const csv = fc.array(piece, { maxLength: 60 }).map((pieces) => Buffer.from(pieces.join('')));
      const cuts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 20 });
      await fc.assert(
        fc.asyncProperty(csv, cuts, async (bytes, sizes) => {
          const pieces: Buffer[] = [];
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const size = sizes[i % sizes.length] as number;
            pieces.push(bytes.subarray(at, at + size));
            at += size;
          }
          const read = [];
          for await (const batch of readCsv(Readable.from(pieces))) {
            for (const record of batch) {
              read.push({ line: record.line, fields: 'fields' in record ? record.fields : undefined });
            }
          }
          expect(read).to.deep.equal(naiveCsv(bytes.toString()));
        }),
        { numRuns: 20_000 },
      );
    });

    it('is read, or rejected with a reason', async () => {
      const noise = fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.stringMatching(/^[ab",\r\n]{0,80}$/).map((csv) => Buffer.from(`name,version\n${csv}\n`)),
      );
      await fc.assert(
        fc.asyncProperty(noise, fc.integer({ min: 1, max: 50 }), async (bytes, size) => {
          try {
            const { total, read } = await check(cut(Buffer.from(bytes), size));
            expect(read).to.have.length(total);
            for (const { name, url } of read) expect(URL.canParse(url) && name !== '').to.equal(true);
          } catch (error) {
            if (!(error instanceof DatasetError)) throw error;
            expect(error.message).not.to.equal('');
          }
        }),
        { numRuns: 2000 },
      );
    });
  });

  describe('in X-Forwarded-For', () => {
    const TRUSTED = ['10.0.0.0/8', 'fd00::/8'];
    const read = clientIpReader(TRUSTED);
    const hop = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      text(20),
      fc.constantFrom('10.0.0.1', 'fd00::1', '::ffff:10.1.1.1', ''),
    );
    const from = (remoteAddress: string, hops: string[]) =>
      read({
        socket: { remoteAddress },
        headers: { 'x-forwarded-for': hops.join(', ') },
      } as unknown as IncomingMessage);

    it('is ignored if it comes from an untrusted peer', () => {
      fc.assert(
        fc.property(fc.array(hop, { maxLength: 6 }), (hops) => {
          expect(from('203.0.113.5', hops)).to.include({ ip: '203.0.113.5', key: '203.0.113.5' });
        }),
        { numRuns: 2000 },
      );
    });

    it('cannot hide the client that trusted hops have seen', () => {
      fc.assert(
        fc.property(fc.array(hop, { maxLength: 6 }), fc.ipV4(), (forged, real) => {
          fc.pre(!real.startsWith('10.'));
          const { ip, key, trustedHops } = from('10.9.9.9', [...forged, real, '10.0.0.2']);
          expect(ip).to.equal(real);
          expect(key).to.equal(real);
          expect(trustedHops).to.deep.equal([real, '10.0.0.2']);
        }),
        { numRuns: 2000 },
      );
    });

    it('always yields a valid address', () => {
      fc.assert(
        fc.property(fc.array(hop, { maxLength: 6 }), (hops) => {
          const { ip, peer } = from('10.9.9.9', hops);
          expect(isIP(ip)).to.be.greaterThan(0);
          expect(peer).to.equal('10.9.9.9');
        }),
        { numRuns: 2000 },
      );
    });
  });

  describe('as a bypass token', () => {
    const NOW = 1_800_000_000;
    const at = (seconds: number) => new BypassTokens('change-me', 'registry', () => seconds * 1000);
    const good = at(NOW).issue();

    it('is rejected unless it was issued', () => {
      const forged = fc.oneof(
        text(80),
        fc
          .tuple(fc.nat(2_000_000_000), fc.stringMatching(/^[\w-]{43}$/))
          .map(([time, signature]) => `${time}:${signature}`),
        fc.tuple(fc.nat(good.length - 1), fc.stringMatching(/^[\x20-\x7e]$/)).map(([i, c]) => good.slice(0, i) + c + good.slice(i + 1)), // prettier-ignore
      );
      fc.assert(
        fc.property(forged, (token) => {
          fc.pre(token !== good);
          expect(at(NOW).secondsLeft(token)).to.equal(0);
        }),
        { numRuns: 5000 },
      );
    });

    it('is valid for the rest of its hour, at any age', () => {
      fc.assert(
        fc.property(fc.integer({ min: -10_000, max: 10_000 }), (age) => {
          const left = age < -5 || age >= BYPASS_SECONDS ? 0 : Math.min(BYPASS_SECONDS, BYPASS_SECONDS - age);
          expect(at(NOW + age).secondsLeft(good)).to.equal(left);
        }),
        { numRuns: 2000 },
      );
    });
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

    it('is parsed within bounds, or rejected with the name of a parameter', () => {
      fc.assert(
        fc.property(querystring, (text) => {
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
        }),
        { numRuns: 5000 },
      );
    });
  });
});
