import type { RequestListener } from 'node:http';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { datasetServer, trickled, type DatasetServer } from '../support/dataset-server.js';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { logLines, useService } from '../support/service.js';

const OLD = bundledPackages().slice(0, 3000);
const CSV = toCsv(OLD);
const LENGTH = Buffer.byteLength(CSV);

/** Sends the first bytes of the snapshot, then disconnects. */
const cutAt =
  (bytes: number, headers: Record<string, string>): RequestListener =>
  (_request, response) => {
    response.writeHead(200, headers).write(CSV.slice(0, bytes), () => response.destroy());
  };

const answer =
  (body: string | Buffer, status = 200): RequestListener =>
  (_request, response) =>
    response.writeHead(status).end(body);

/** The snapshot with an additional last row. */
const withRow = (row: string | Buffer) =>
  answer(Buffer.concat([Buffer.from(CSV), Buffer.from(row), Buffer.from('\n')]));

const CUT = /^the dataset could not be downloaded: ./;
const LINE = OLD.length + 2;
const URL_OF_ROW = 'https://registry.example/a';

const downloads: [what: string, listener: RequestListener, reason: RegExp][] = [
  ['is cut off in the middle', cutAt(LENGTH / 2, { 'Content-Length': String(LENGTH) }), CUT],
  ['is cut off in the middle, without a length', cutAt(LENGTH / 2, {}), CUT],
  ['is cut off at the last byte', cutAt(LENGTH - 1, { 'Content-Length': String(LENGTH) }), CUT],
  ['is cut off at the last byte, without a length', cutAt(LENGTH - 1, {}), CUT],
  [
    'was cut off at its origin',
    answer(CSV.slice(0, -1)),
    /^line 3001: the last record does not end with a line end, so the file may be cut off/,
  ],
  ['is missing', answer('no such file', 404), /^the dataset's server responded with 404 instead of 200$/],
  ['gets a server error', answer(CSV, 500), /^the dataset's server responded with 500 instead of 200$/],
  ['is an HTML page', answer('<!DOCTYPE html>\n<p>Log in'), /this is an HTML page$/],
  ['is empty', answer(''), /^the dataset is empty$/],
  ['is truncated gzip', answer(gzipSync(CSV).subarray(0, -1)), /^the gzip is cut off or damaged: ./],
  ['is gzip of nothing', answer(gzipSync('')), /^the dataset is empty$/],
];

const rows: [what: string, row: string | Buffer, reason: string][] = [
  ['has too few fields', '9999999,a,1', '3 fields instead of 4'],
  ['has too many fields', `9999999,a,1,${URL_OF_ROW},`, '5 fields instead of 4'],
  ['is empty', '', '1 fields instead of 4'],
  ['is badly quoted', `9999999,"a"b,1,${URL_OF_ROW}`, 'bad quoting'],
  ['opens a quote', `9999999,"a,1,${URL_OF_ROW}`, 'a quote is opened and never closed'],
  ['has a carriage return', `9999999,a\rb,1,${URL_OF_ROW}`, 'a carriage return outside quotes'],
  ['is not UTF-8', Buffer.from([0x39, 0x2c, 0xff, 0x2c, 0x31, 0x2c, 0x61]), 'not valid UTF-8'],
  ['has no name', `9999999,,1,${URL_OF_ROW}`, 'name is empty'],
  ['has too long a name', `9999999,${'x'.repeat(513)},1,${URL_OF_ROW}`, 'name is longer than 512 bytes'],
  [
    'has too long a version',
    `9999999,a,${'1'.repeat(257)},${URL_OF_ROW}`,
    'version is longer than 256 bytes',
  ],
  ['has too long a URL', `9999999,a,1,${URL_OF_ROW}${'x'.repeat(2023)}`, 'url is longer than 2048 bytes'],
  ['has a URL of 800 KB', `9999999,a,1,/${'x'.repeat(800_000)}`, 'url is longer than 2048 bytes'],
  ['has a URL with a tab', `9999999,a,1,${URL_OF_ROW}\tb`, `url "${URL_OF_ROW}\\tb" has a control character`],
  [
    'has a long number',
    `${'9'.repeat(800_000)},a,1,${URL_OF_ROW}`,
    `package_no "${'9'.repeat(64)}"… is not a positive integer`,
  ],
  ['has number 0', `0,a,1,${URL_OF_ROW}`, 'package_no "0" is not a positive integer'],
  ['has no number', `,a,1,${URL_OF_ROW}`, 'package_no "" is not a positive integer'],
  ['has no URL', '9999999,a,1,', 'url is empty, and PACKAGE_URL_TEMPLATE is not set'],
  ['has a relative URL', '9999999,a,1,/a', 'url "/a" is not absolute'],
  [
    'repeats a name',
    `9999999,${OLD[0]?.name},1,${URL_OF_ROW}`,
    `name "${OLD[0]?.name}" is already on line 2`,
  ],
  ['repeats a number', `${OLD[0]?.no},a,1,${URL_OF_ROW}`, `package_no ${OLD[0]?.no} is already on line 2`],
];

/** Length of the longest reason, or error with its stack, that a failed rebuild has logged. */
function longestLogged(): number {
  return Math.max(
    ...logLines
      .filter(({ reason }) => reason !== undefined)
      .map(({ reason, err }) => JSON.stringify({ reason, err }).length),
  );
}

describe('A bad snapshot', function () {
  this.timeout(60_000);
  let listener = answer(CSV);
  let origin: DatasetServer;

  before(async () => {
    origin = await datasetServer((request, response) => listener(request, response));
  });
  const suite = useService(
    () => OLD,
    () => ({ DATASET_URL: origin.url, ...UNCACHED }),
  );
  const reading = useBackgroundReader(suite, [OLD.length, OLD.length / 2]);
  after(() => origin.close());

  async function expectRefused(bad: RequestListener, reason: RegExp | string): Promise<void> {
    const served = await suite.service.indices();
    listener = bad;
    expect((await suite.service.rebuild()).status).to.equal(202);
    const failure = suite.service.server.rebuilds.lastFailure?.reason;
    if (typeof reason === 'string') expect(failure).to.equal(reason);
    else expect(failure).to.match(reason);
    expect(await suite.service.indices()).to.deep.equal(served);
    expect(failure).to.have.length.within(1, 300);
    expect(longestLogged()).to.be.below(2000);
    listener = answer('', 404);
    const next = await suite.service.rebuild();
    expect(next.status).to.equal(202);
    expect(next.body.last_failure.reason).to.equal(failure);
  }

  for (const [what, bad, reason] of downloads) {
    it(`that ${what} is rejected, and the old one stays in service`, () => expectRefused(bad, reason));
  }

  for (const [what, row, reason] of rows) {
    it(`with a row that ${what} is rejected with its line, and the old one stays in service`, () =>
      expectRefused(withRow(row), `line ${LINE}: ${reason}`));
  }

  const half = answer(toCsv(OLD.slice(0, OLD.length / 2)));

  it('that is half as large is rejected, and the old one stays in service', () =>
    expectRefused(half, /^the snapshot has 1500 packages, the previous one 3000: smaller by more than 10 %/));

  it('that is half as large is accepted with force=true', async () => {
    listener = half;
    await suite.service.rebuild('&force=true');
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
    expect((await suite.service.get('/health')).body.total_packages).to.equal(OLD.length / 2);
  });

  it('without packages is rejected even with force=true', async () => {
    listener = answer(toCsv(packagesNamed([])));
    await suite.service.rebuild('&force=true');
    expect(suite.service.server.rebuilds.lastFailure?.reason).to.equal(
      'the dataset has a header and no packages',
    );
  });

  reading.itNoticesNothing();
});

describe('A dataset that is not downloaded within DATASET_DOWNLOAD_TIMEOUT_SECONDS', function () {
  this.timeout(60_000);
  let listener = answer(CSV);
  let origin: DatasetServer;

  before(async () => {
    origin = await datasetServer((request, response) => listener(request, response));
  });
  const suite = useService(
    () => OLD,
    () => ({ DATASET_URL: origin.url, DATASET_DOWNLOAD_TIMEOUT_SECONDS: '2' }),
  );
  after(() => origin.close());

  it('fails the rebuild, keeps the old snapshot, and releases the lock for the next rebuild', async () => {
    // Fast enough not to count as stalled.
    listener = trickled(CSV, 10_000, 50);
    const began = performance.now();
    expect((await suite.service.rebuild()).status).to.equal(202);
    expect(performance.now() - began).to.be.within(2000, 10_000);
    expect(suite.service.server.rebuilds.lastFailure?.reason).to.equal(
      'the dataset could not be downloaded within 2 s (DATASET_DOWNLOAD_TIMEOUT_SECONDS)',
    );
    expect((await suite.service.get('/health')).body.total_packages).to.equal(OLD.length);
    listener = answer(CSV);
    expect((await suite.service.rebuild()).status).to.equal(202);
    expect(suite.service.server.rebuilds.lastFailure).to.be.undefined;
  });
});

describe('A row at the bounds of the contract', () => {
  const base = 'https://registry.example/';
  const rows = [
    { no: Number.MAX_SAFE_INTEGER, name: 'n'.repeat(512), version: 'v'.repeat(256), url: base.padEnd(2048, 'u') },
    { no: 1, name: 'İ'.repeat(256), version: '"'.repeat(256), url: base + '語'.repeat(674) + 'u' },
  ]; // prettier-ignore
  const suite = useService(() => rows);

  it('is loaded and served unchanged', async () => {
    for (const { name, version, url } of rows) {
      expect([name, version, url].map((text) => Buffer.byteLength(text))).to.deep.equal([512, 256, 2048]);
    }
    expect((await suite.service.get('/browse')).body.results).to.deep.equal(rows.toReversed());
  });
});
