import { rejects } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { hash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, readlink, rm, utimes, writeFile } from 'node:fs/promises';
import type { OutgoingHttpHeaders, RequestListener, ServerResponse } from 'node:http';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { DatasetError, BadRows } from '../../../src/lists/fetch/dataset-error.js';
import type { DownloadedDataset } from '../../../src/lists/download.js';
import { reasonOf } from '../../../src/rebuild/failure-reason.js';
import { checkPackages } from '../../../src/lists/checked-packages.js';
import { datasetServer, trickled, type DatasetServer } from '../../support/dataset-server.js';
import { downloadList, type ListOptions } from '../../support/list-server.js';
import { STEP } from '../../support/step.js';

const CSV = 'name,url\né日本🚀,https://registry.example/a\n';
/** Longer than any buffer on the way. */
const LONG_CSV = `name,url\n${Array.from({ length: 2500 }, (_, i) => `a${i},https://registry.example/${noise(i)}\n`).join('')}`;
const NEVER = new AbortController().signal;
/** A deadline that no test reaches by accident. */
const timeoutMs = 60_000;

type Limits = Omit<ListOptions, 'timeoutSeconds'> & { timeoutMs?: number };

/** Downloads a CSV. */
const download = (url: string, signal: AbortSignal, { timeoutMs: ms = timeoutMs, ...limits }: Limits) =>
  downloadList('csv', url, { template: undefined, timeoutSeconds: ms / 1000, ...limits }, signal);

/** 384 characters that gzip cannot shorten by much. */
function noise(seed: number): string {
  return [1, 2, 3].map((i) => hash('sha512', `${seed}-${i}`)).join('');
}

const FAILED = 'the dataset could not be downloaded:';
const CLOSED = `${FAILED} the connection was closed before the end`;

/** Gzip with the given time in its header. */
function gzipAt(content: string, time: number | string): Buffer {
  const zipped = gzipSync(content);
  zipped.writeUInt32LE(Math.floor(new Date(time).getTime() / 1000), 4);
  return zipped;
}

const answer =
  (body?: string | Buffer, status = 200, headers: OutgoingHttpHeaders = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(status, headers).end(body);

/** Sends all but the last byte of a dataset, then disconnects. */
const cutOff =
  (headers: OutgoingHttpHeaders = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(200, headers).write(LONG_CSV.slice(0, -1), () => response.destroy());

describe('download', () => {
  // This suite has its own temporary folder, to detect files that a download leaves behind.
  const env = process.env; // eslint-disable-line no-restricted-properties -- os.tmpdir() reads it
  const usual = env['TMPDIR'];
  let scratch: string;
  let inbox: string;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'package-registry-search-test-'));
    inbox = await mkdtemp(join(tmpdir(), 'package-registry-search-test-'));
    env['TMPDIR'] = scratch;
  });

  after(async () => {
    if (usual === undefined) delete env['TMPDIR'];
    else env['TMPDIR'] = usual;
    await Promise.all([scratch, inbox].map((folder) => rm(folder, { recursive: true })));
  });

  const snapshots: DownloadedDataset[] = [];
  const servers: DatasetServer[] = [];

  /** After a failed download, this finds whatever it left behind. */
  afterEach(async () => {
    await Promise.all(snapshots.splice(0).map(({ packages }) => packages.close()));
    await Promise.all(servers.splice(0).map((server) => server.close()));
    expect(await readdir(scratch), 'left behind').to.deep.equal([]);
    expect(await openFiles(), 'not closed').to.equal(0);
  });

  async function snapshotOf(url: string, limits: Limits = {}, signal = NEVER): Promise<DownloadedDataset> {
    const snapshot = await download(url, signal, limits);
    if (snapshot === undefined) throw new Error('download returned no snapshot');
    snapshots.push(snapshot);
    return snapshot;
  }

  async function textOf(url: string, limits?: Limits): Promise<string> {
    return textIn(await snapshotOf(url, limits));
  }

  /** The packages of a snapshot, as a CSV. */
  async function textIn({ packages }: DownloadedDataset): Promise<string> {
    let rows = 'name,url\n';
    for await (const { entries } of packages.read())
      rows += entries.map(({ name, url }) => `${name},${url}\n`).join('');
    return rows;
  }

  /** What a rebuild does before it needs Elasticsearch. @returns the number of packages, or the reason of the failure. */
  async function outcomeOf(url: string, limits?: Limits): Promise<string> {
    try {
      const snapshot = await snapshotOf(url, limits);
      const options = { badRows: new BadRows(0, STEP.log), signal: NEVER };
      const { total } = await checkPackages(snapshot.packages, options);
      return `${total} packages`;
    } catch (error) {
      expect(error).to.be.an.instanceOf(DatasetError);
      const reason = reasonOf(error as Error);
      expect(reason).to.have.length.within(1, 300);
      return reason;
    }
  }

  /** @returns the address of a new file, whose name has to be encoded in it. */
  async function fileOf(content: string | Buffer): Promise<string> {
    const url = pathToFileURL(join(await mkdtemp(`${inbox}/`), 'näme #1?%.csv'));
    await writeFile(url, content);
    return url.href;
  }

  async function serve(listener: RequestListener): Promise<string> {
    const server = await datasetServer(listener);
    servers.push(server);
    return server.url;
  }

  /** Sends everything at once, so that the connection ends long before the data is stored. */
  async function serveRaw(response: string, close = (socket: Socket) => void socket.end()): Promise<string> {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.write(response, () => close(socket)));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    servers.push({ url, close: () => new Promise((resolve) => server.close(() => resolve())) });
    return url;
  }

  describe('from a file', () => {
    it('returns the packages any number of times even if the file changes', async () => {
      const padded = [1, 100, 100_000].map((zeros) => Buffer.concat([gzipSync(CSV), Buffer.alloc(zeros)]));
      const digests = new Set<string>();
      for (const [content, original] of [
        [CSV, CSV],
        [CSV, `\uFEFFurl,note,name\r\nhttps://registry.example/a,,"é日本🚀"\r\n`],
        [LONG_CSV, gzipSync(LONG_CSV)],
        [LONG_CSV, LONG_CSV],
        [CSV, Buffer.concat([gzipSync('name,url\n'), gzipSync(CSV.slice('name,url\n'.length))])],
        ...padded.map((zipped) => [CSV, zipped] as const),
      ] as const) {
        const url = await fileOf(original);
        const snapshot = await snapshotOf(url);
        // A reader may stop early.
        for await (const { entries } of snapshot.packages.read()) {
          expect(entries.length).to.be.within(1, 1000);
          break;
        }
        expect(await textIn(snapshot)).to.equal(content);
        await writeFile(new URL(url), 'something else');
        expect(await textIn(snapshot)).to.equal(content);
        digests.add(snapshot.digest);
      }
      expect(digests.size).to.equal(2);
    });

    it('has another digest if packages, their order, or the columns of numbers and weights differ', async () => {
      const url = 'https://registry.example/a';
      const lists = [
        `name,url\na,${url}\nb,${url}\n`,
        `name,url\nb,${url}\na,${url}\n`,
        `name,url,version\na,${url},2\nb,${url},\n`,
        `name,url,package_no\na,${url},1\nb,${url},2\n`,
        `name,url,weight\na,${url},\nb,${url},\n`,
      ];
      const digests = await Promise.all(
        lists.map(async (list) => (await snapshotOf(await fileOf(list))).digest),
      );
      expect(new Set(digests).size).to.equal(lists.length);
    });

    it('rejects a file that somebody writes to', async () => {
      const url = await fileOf(LONG_CSV);
      const writing = setInterval(() => appendFileSync(fileURLToPath(url), 'a,https://registry.example/a\n'));
      const outcome = await outcomeOf(url).finally(() => clearInterval(writing));
      expect(outcome).to.equal('the file at the path of the dataset changed while it was read');
    });

    it('reads the file that it opened to its end, even if another one takes its name', async () => {
      const url = await fileOf(LONG_CSV);
      const path = fileURLToPath(url);
      const replacing = setInterval(() => {
        writeFileSync(`${path}.new`, CSV);
        renameSync(`${path}.new`, path);
      });
      const outcomes = await Promise.all([textOf(url), textOf(url)]).finally(() => clearInterval(replacing));
      for (const outcome of outcomes) expect(outcome).to.be.oneOf([LONG_CSV, CSV]);
    });

    it('rejects addresses that lead to no file, without waiting for the writer of a pipe', async () => {
      const folder = new URL('.', await fileOf(CSV)).href;
      await once(spawn('mkfifo', [fileURLToPath(`${folder}pipe`)], { stdio: 'ignore' }), 'exit');
      for (const [url, reason] of [
        [`${folder}missing`, 'there is no file at the path of the dataset'],
        [folder, 'the path of the dataset is not a file'],
        [`${folder}pipe`, 'the path of the dataset is not a file'],
      ] as const) {
        expect(await outcomeOf(url)).to.equal(reason);
      }
    });
  });

  describe('dates the snapshot', () => {
    const MAY = '2024-05-06T07:08:09.000Z';
    const JANUARY = '2024-01-02T03:04:05.000Z';
    const inMs = (ms: number) => new Date(Date.now() + ms).toUTCString();

    async function dateOf(url: string): Promise<string> {
      const began = Date.now();
      const { takenAt } = await snapshotOf(url);
      return takenAt.getTime() >= began - 1000 && takenAt.getTime() <= Date.now()
        ? 'now'
        : takenAt.toISOString();
    }

    it('by the gzip header of a file, else by its last change, else by the current time', async () => {
      const zipped = gzipAt(CSV, JANUARY);
      const dates: [content: string | Buffer, changedAt: string | number, date: string][] = [
        [zipped, MAY, JANUARY],
        [CSV, MAY, MAY],
        [gzipAt(CSV, 0), MAY, MAY],
        [gzipAt(CSV, inMs(60_000)), MAY, 'now'],
        [CSV, inMs(3_600_000), 'now'],
      ];
      for (const [content, changedAt, date] of dates) {
        const url = await fileOf(content);
        await utimes(new URL(url), new Date(changedAt), new Date(changedAt));
        expect(await dateOf(url)).to.equal(date);
      }
    });

    it('by Last-Modified, else by the gzip header, else by the current time', async () => {
      const responses: [lastModified: string, content: string | Buffer, date: string][] = [
        ['Mon, 06 May 2024 07:08:09 GMT', gzipAt(CSV, JANUARY), MAY],
        // The clock of the server is fast.
        [inMs(60_000), gzipAt(CSV, JANUARY), 'now'],
        // What servers send for unknown times, and text with a number.
        ['Thu, 01 Jan 1970 00:00:00 GMT', gzipAt(CSV, JANUARY), JANUARY],
        ['version 3', gzipAt(CSV, 0), 'now'],
        [inMs(3_600_000), gzipAt(CSV, inMs(3_600_000)), 'now'],
      ];
      for (const [lastModified, content, date] of responses) {
        const url = await serve(answer(content, 200, { 'Last-Modified': lastModified }));
        expect(await dateOf(url), lastModified).to.equal(date);
      }
    });
  });

  describe('over HTTP', () => {
    it('returns the same packages and digest, whatever the headers and the compression', async () => {
      const digests = new Set<string>();
      for (const encoding of ['', 'identity', 'gzip, identity', 'aws-chunked', 'utf-8', 'GZIP']) {
        for (const body of [LONG_CSV, gzipSync(LONG_CSV)]) {
          const snapshot = await snapshotOf(await serve(answer(body, 200, { 'Content-Encoding': encoding })));
          expect(await textIn(snapshot), encoding).to.equal(LONG_CSV);
          digests.add(snapshot.digest);
        }
      }
      expect(digests.size).to.equal(1);
    });

    it('follows at most five redirects, without reading their bodies', async () => {
      const redirecting = (times: number) =>
        serve((request, response) => {
          const hop = Number(new URL(request.url ?? '', 'http://any').searchParams.get('hop'));
          if (hop === times) response.end(CSV);
          else response.writeHead(302, { Location: `/?hop=${hop + 1}` }).write('endless');
        });
      expect(await textOf(await redirecting(5))).to.equal(CSV);
      const reason = "the dataset's server redirects more than 5 times";
      expect(await outcomeOf(await redirecting(6))).to.equal(reason);
      expect(await outcomeOf(await serve(answer('', 302, { Location: '' })))).to.equal(reason);
    });

    it('revalidates by ETag or Last-Modified, only with the address that sent them', async () => {
      const asked: (string | undefined)[] = [];
      const modified = 'Wed, 01 Jul 2026 00:00:00 GMT';
      let headers: Record<string, string> = { ETag: '"one"', 'Last-Modified': modified };
      const url = await serve((request, response) => {
        const condition = request.headers['if-none-match'] ?? request.headers['if-modified-since'];
        asked.push(condition);
        const same = condition !== undefined && Object.values(headers).includes(condition);
        response.writeHead(same ? 304 : 200, headers).end(same ? undefined : CSV);
      });
      const { validators: known } = await snapshotOf(url);
      expect(await download(url, NEVER, { known })).to.be.undefined;
      headers = { 'Last-Modified': modified };
      const { validators: dated } = await snapshotOf(url);
      expect(await download(url, NEVER, { known: dated })).to.be.undefined;
      headers = { ETag: '"two"' };
      expect(await textOf(url, { known })).to.equal(CSV);
      expect(await textOf(`${url}?other`, { known })).to.equal(CSV);
      headers = {};
      expect((await snapshotOf(url)).validators).to.be.undefined;
      expect(asked).to.deep.equal([undefined, '"one"', undefined, modified, '"one"', undefined, undefined]);
    });

    it('sends the headers that some servers require', async () => {
      const url = await serve(({ headers }, response) => {
        const isComplete = /^package-registry-search\/\d/.test(headers['user-agent'] ?? '');
        response.writeHead(isComplete && headers.accept === '*/*' ? 200 : 403).end(CSV);
      });
      expect(await textOf(url)).to.equal(CSV);
    });

    const http = 'HTTP/1.1 200 OK\r\n';
    for (const head of [`Content-Length: ${LONG_CSV.length}`, 'Connection: close']) {
      it(`accepts a complete response with ${head} whose connection ends early`, async () => {
        const url = await serveRaw(`${http}${head}\r\n\r\n${LONG_CSV}`);
        for (let i = 0; i < 3; i++) expect(await textOf(url)).to.equal(LONG_CSV);
      });
    }

    it('rejects a response without a length whose connection is reset', async () => {
      // Several times: on a busy machine, a reset sometimes passes as the end of the response.
      const reset = (socket: Socket) => void setTimeout(() => socket.resetAndDestroy());
      const resets = Array.from({ length: 5 }, async () =>
        outcomeOf(await serveRaw(`${http}\r\n${CSV}`, reset)),
      );
      expect(await Promise.all(resets)).to.include(`${FAILED} read ECONNRESET`);
    });

    it('rejects a dataset that is too large by a byte, as announced, sent or decompressed', async () => {
      const announced = await serve((_request, response) => {
        response.writeHead(200, { 'Content-Length': String(2 ** 52) }).write('name,url\n');
      });
      expect(await outcomeOf(announced)).to.equal('the dataset is larger than 17179869184 bytes');
      const maxBytes = LONG_CSV.length - 1;
      expect(await textOf(await serve(answer(LONG_CSV)), { maxBytes: maxBytes + 1 })).to.equal(LONG_CSV);
      const tooLarge = { name: 'DatasetError', message: `the dataset is larger than ${maxBytes} bytes` };
      await rejects(snapshotOf(await serve(answer(LONG_CSV)), { maxBytes }), tooLarge);
      await rejects(textOf(await serve(answer(gzipSync(LONG_CSV))), { maxBytes }), tooLarge);
    });

    it('stops when aborted, before and during the response', async () => {
      for (const start of [undefined, 'name\n']) {
        const stop = new AbortController();
        const url = await serve((_request, response) => {
          if (start !== undefined) response.write(start);
          setTimeout(() => stop.abort(new Error('the server is stopping')), 50);
        });
        await rejects(snapshotOf(url, {}, stop.signal), { name: 'Error', message: 'the server is stopping' });
      }
    });
  });

  describe('rejects a dataset', () => {
    const SERVER = "the dataset's server";
    const withLength = { 'Content-Length': String(LONG_CSV.length) };
    const DAMAGED = 'the gzip is cut off or damaged:';
    const REDIRECTED = `${SERVER} redirects to something that is not an http(s) address`;

    const zipped = gzipSync(CSV);
    type Bad = [what: string, listener: RequestListener, reason: string];
    const bad: Bad[] = [
      ['that is cut off at the last byte', cutOff(withLength), CLOSED],
      ['that is cut off at the last byte, without a length', cutOff(), CLOSED],
      ['that is cut off before the response', ({ socket }) => socket.destroy(), `${FAILED} socket hang up`],
      ['without the last line end', answer(CSV.slice(0, -1)), 'line 2: the last record does not end with a line end, so the file may be cut off'],
      ['without the last byte of its gzip', answer(zipped.subarray(0, -1)), `${DAMAGED} unexpected end of file`],
      ['whose checksum is wrong', answer(Buffer.concat([zipped.subarray(0, -8), Buffer.alloc(4), zipped.subarray(-4)])), `${DAMAGED} incorrect data check`],
      ['with a truncated second gzip', answer(Buffer.concat([zipped, zipped.subarray(0, -1)])), `${DAMAGED} unexpected end of file`],
      ['that is empty', answer(''), 'the dataset is empty'],
      ['of a header alone', answer('name,url\n'), 'the dataset has a header and no packages'],
      ['with lines that end with CR', answer(CSV.replaceAll('\n', '\r')), 'line 1 (the header): lines end with CR alone: end them with LF or CRLF'],
      ['that is gzip in gzip', answer(gzipSync(gzipSync(CSV))), 'the document is compressed twice'],
      ['that is an HTML page', answer('<!DOCTYPE html>\n<p>Log in'), 'line 1: the header has no column `name`: "<!DOCTYPE html>". Separate fields with commas, or set DATASET_FORMAT'],
      ...Object.entries({ zstd: '28b52ffd', bzip2: '425a6839', lz4: '04224d18' }).map(([by, start]): Bad =>
        [`that is compressed by ${by}`, answer(Buffer.from(start, 'hex')), 'this is compressed by zstd, lz4 or bzip2: compress it with gzip']),
      ...[`\ufeff${CSV}`, CSV].map((body) => Buffer.from(body, 'utf16le')).flatMap((body) => [body, Buffer.from(body).swap16(), gzipSync(body)]).map((body, i): Bad =>
        [`in UTF-16, form ${i}`, answer(body), 'this is UTF-16 or UTF-32: save it as UTF-8']),
      ['that is a spreadsheet', answer('PK\x03\x04, and so on'), 'this is a zip archive or a spreadsheet: save it as CSV, plain or gzip'],
      ...[204, 206, 304, 404, 500].map((code): Bad =>
        [`with status ${code}`, answer([204, 304].includes(code) ? undefined : CSV, code), `${SERVER} responded with ${code} instead of 200`]),
      ...['http://[', 'file:///etc/hostname'].map((Location): Bad =>
        [`that redirects to ${Location}`, answer('', 302, { Location }), REDIRECTED]),
    ]; // prettier-ignore
    for (const [what, listener, reason] of bad) {
      it(what, async () => {
        expect(await outcomeOf(await serve(listener))).to.equal(reason);
      });
    }
  });

  describe('from a slow server', () => {
    const windowMs = 300;

    /** Calls `send` every 20 ms until the connection is closed. */
    const repeating =
      (send: (response: ServerResponse, count: number) => unknown): RequestListener =>
      (_request, response) => {
        let count = 0;
        const timer = setInterval(() => send(response, count++), 20);
        response.on('close', () => clearInterval(timer));
      };
    const LATE = `${FAILED} its server did not respond within 0.3 s`;
    const STALLED = `${FAILED} its server did not send more within 0.3 s`;
    const DEADLINE = 'the dataset could not be downloaded within 0.5 s (DATASET_DOWNLOAD_TIMEOUT_SECONDS)';
    const head = `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(1000)}`;
    const noWindow = { timeoutMs: 500, windowMs: timeoutMs };

    const slow: [what: string, listener: RequestListener, reason: string, limits?: Limits][] = [
      ['never responds', () => undefined, LATE],
      ['trickles its headers', repeating(({ socket }, i) => socket?.write(head.charAt(i))), LATE],
      ['sends headers and nothing else', (_request, response) => response.flushHeaders(), STALLED],
      ['stalls within the body', (_request, response) => response.write('name\n'), STALLED],
      ['trickles the body', trickled('', 1, 20), DEADLINE, { timeoutMs: 500 }],
      ['sends fast and forever', trickled('', 20_000, 20), DEADLINE, noWindow],
      ['redirects slowly', repeating((response, i) => i === 7 && response.writeHead(302, { Location: '/' }).end()), DEADLINE, noWindow],
    ]; // prettier-ignore
    it('gives up without a response, without progress or at the deadline, not earlier', async () => {
      const began = performance.now();
      const outcomes = slow.map(async ([what, listener, , limits]) => {
        return [what, await outcomeOf(await serve(listener), { windowMs, ...limits })];
      });
      expect(await Promise.all(outcomes)).to.deep.equal(slow.map(([what, , reason]) => [what, reason]));
      expect(performance.now() - began).to.be.within(490, 5000);
    });
  });

  it('is in a file without a name until it is closed, so that a killed process leaves nothing', async () => {
    const url = await fileOf(CSV);
    // Another process that shares the folder may have just created it.
    const ofOthers = `package-registry-search-${randomUUID()}`;
    await writeFile(join(scratch, ofOthers), '');
    const [first, second] = [await snapshotOf(url), await snapshotOf(url)];
    expect(await readdir(scratch)).to.deep.equal([ofOthers]);
    await rm(join(scratch, ofOthers));
    expect(await openFiles()).to.equal(2);
    for (let i = 0; i < 2; i++) {
      await first.packages.close();
      expect(await openFiles()).to.equal(1);
    }
    for (let i = 0; i < 2; i++) expect(await textIn(second)).to.equal(CSV);
  });

  it('fails with a reason that names TMPDIR if there is no temporary folder', async () => {
    env['TMPDIR'] = join(scratch, 'missing');
    const outcome = outcomeOf(await fileOf(CSV)).finally(() => (env['TMPDIR'] = scratch));
    expect(await outcome).to.equal('no file can be created in the temporary folder (TMPDIR): ENOENT');
  });
});

/** Files of downloads that this process has open. */
async function openFiles(): Promise<number> {
  const folder = '/proc/self/fd';
  const links = (await readdir(folder)).map((fd) => readlink(join(folder, fd)).catch(() => ''));
  return (await Promise.all(links)).filter((path) => /package-registry-search-.* \(deleted\)$/.test(path))
    .length;
}
