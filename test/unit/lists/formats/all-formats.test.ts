import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { integer, seededRandom } from '../../../fixtures/random.js';
import {
  convert,
  cutOff,
  inTurn,
  listServer,
  LOGIN_PAGE,
  withStatus,
  type Answer,
  type ListServer,
  type Row,
} from '../../../support/list-server.js';
import { EXAMPLES } from '../../../support/lists.js';

/** Lists that happen to be lists in another format, too. */
const READ_BY_OTHERS = ['lines by rubygems', 'csv by lines'];

/** Asserts that these are the first packages of a list, with versions that the list has: of repeated names, another one. */
function expectBeginning(rows: Row[], expected: readonly Row[], document: Buffer): void {
  const withoutVersion = (row: Row) => Object.entries(row).filter(([column]) => column !== 'version');
  expect(rows.map(withoutVersion)).to.deep.equal(expected.slice(0, rows.length).map(withoutVersion));
  const words = new Set(['', undefined, ...document.toString().split(/[^\w.]+/)]);
  expect(rows.filter(({ version }) => !words.has(version))).to.deep.equal([]);
}

describe('Lists in every format', () => {
  const servers: ListServer[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.close();
  });

  async function serve(answer: (url: URL) => Answer): Promise<ListServer> {
    const server = await listServer(answer);
    servers.push(server);
    return server;
  }

  for (const { format, what, paths = { items: [] }, isOpenEnded, document, answer, expected } of EXAMPLES) {
    describe(`${format}: ${what}`, () => {
      const convertFrom = async (given: (url: URL) => Answer) =>
        convert(format, `${(await serve(given)).origin}/list`, { paths });
      /** The answers of the server with another first document. */
      const first = (body: Answer) => {
        let isFirst = true;
        return (url: URL) => {
          if (!isFirst) return answer(url);
          isFirst = false;
          return body;
        };
      };

      it('has the packages of an independent conversion', async () => {
        const rows = await convertFrom(answer);
        expect(rows).to.deep.equal(expected);
        expect(rows).to.have.length.greaterThan(100);
      });

      it('is read from gzip', async () => {
        const zipped = format === 'crates' ? document : gzipSync(document);
        if (format === 'json' && what.includes('link')) return;
        expect(await convertFrom(first(zipped))).to.deep.equal(expected);
      });

      it('is rejected, or has the packages of the rest, if it is truncated at 20 random places', async () => {
        const random = seededRandom(document.length);
        for (let i = 0; i < 20; i++) {
          const part = document.subarray(0, integer(random, 0, document.length - 2));
          const given = (url: URL) =>
            url.pathname === '/list' && url.search === firstSearch ? part : answer(url);
          const firstSearch = format === 'npm' ? '?limit=10000' : '';
          const outcome = await convertFrom(given);
          if (typeof outcome === 'string')
            expect(outcome).to.match(/cut off|empty|malformed|expected|no Version|no packages|valid UTF-8/);
          // The rest of a page is read as if the page was shorter.
          else if (format === 'npm') expect(outcome).to.deep.equal(expected);
          else {
            expect(isOpenEnded, 'is open-ended').to.not.equal(undefined);
            expectBeginning(outcome, expected, document);
            if (isOpenEnded === 'line') expect(part.at(-1)).to.equal(0x0a);
          }
        }
      });

      it('is rejected if it is a login page, empty, or in another format', async () => {
        for (const other of [
          LOGIN_PAGE,
          '',
          ' \n',
          ...EXAMPLES.filter(
            (one) => one.format !== format && !READ_BY_OTHERS.includes(`${one.format} by ${format}`),
          ).map((one) => one.document),
        ]) {
          const outcome = await convertFrom(() => other);
          expect(outcome, other.toString().slice(0, 40)).to.be.a('string');
        }
      });

      it('is asked for again if its server is overloaded', async () => {
        const failures = [
          withStatus(500),
          withStatus(429, { 'Retry-After': '0' }),
          (): Answer => (response) => response.destroy(),
        ];
        const rows = await convertFrom(inTurn(...failures, answer));
        expect(rows).to.deep.equal(expected);
      });

      it('fails if the server stays unavailable or has no such document, which it is asked for once', async () => {
        const server = await serve(withStatus(503));
        const outcome = await convert(format, `${server.origin}/list`, { paths });
        expect(outcome).to.match(/the dataset's server responded with 503 instead of 200$/);
        expect(server.requests).to.have.length(4);
        const other = await serve(withStatus(404));
        expect(await convert(format, `${other.origin}/list`, { paths })).to.match(
          /responded with 404 instead of 200$/,
        );
        expect(other.requests).to.have.length(1);
      });

      it('is rejected if the connection is closed before the end, unless it is a page, which is read again', async () => {
        const interrupted = cutOff(document);
        const outcome = await convertFrom(inTurn(interrupted, answer));
        if (['npm', 'json'].includes(format)) expect(outcome).to.deep.equal(expected);
        else
          expect(outcome).to.equal(
            'the dataset could not be downloaded: the connection was closed before the end',
          );
        expect(await convertFrom(interrupted)).to.match(
          /the connection was closed before the end$|that the page begins with$/,
        );
      });
    });
  }
});
