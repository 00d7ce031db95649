import { rejects } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  rm,
  stat,
  statfs,
  utimes,
  writeFile,
} from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { download, type Snapshot } from '../../../src/rebuild/download.js';
import { datasetServer, type DatasetServer } from '../../support/dataset-server.js';
import { datasetFile, type DatasetFile } from '../../support/datasets.js';

const CSV = 'name,url\né日本🚀,https://registry.example/a\n';
const NEVER = new AbortController().signal;
/** A deadline that no test reaches by accident. */
const timeoutMs = 60_000;

/** Longer than any buffer on the way. */
const LONG_CSV = `name,url\n${'a name,https://registry.example/a\n'.repeat(100_000)}`;

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

async function textOf(snapshot: Snapshot): Promise<string> {
  return text(snapshot.read());
}

/** Gzip with the given time in its header, in milliseconds since 1970. */
function gzipAt(content: string, ms: number): Buffer {
  const zipped = gzipSync(content);
  zipped.writeUInt32LE(Math.floor(ms / 1000), 4);
  return zipped;
}

describe('download', () => {
  // This suite has its own temporary folder, to detect files that a download leaves behind.
  const env = process.env; // eslint-disable-line no-restricted-properties -- os.tmpdir() reads it
  const usual = env['TMPDIR'];
  let scratch: string;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'package-registry-search-test-'));
    env['TMPDIR'] = scratch;
  });

  after(async () => {
    if (usual === undefined) delete env['TMPDIR'];
    else env['TMPDIR'] = usual;
    await rm(scratch, { recursive: true });
  });

  const snapshots: Snapshot[] = [];
  const files: DatasetFile[] = [];
  const servers: DatasetServer[] = [];

  afterEach(async () => {
    await Promise.all(snapshots.splice(0).map((snapshot) => snapshot.remove()));
    await Promise.all(files.splice(0).map((file) => file.remove()));
    await Promise.all(servers.splice(0).map((server) => server.close()));
    expect(await readdir(scratch), 'left behind').to.deep.equal([]);
  });

  async function snapshotOf(
    url: string,
    signal = NEVER,
    limits: Partial<Parameters<typeof download>[2]> = {},
  ): Promise<Snapshot> {
    const snapshot = await download(url, signal, { timeoutMs, ...limits });
    if (snapshot === undefined) throw new Error('download returned no snapshot');
    snapshots.push(snapshot);
    return snapshot;
  }

  async function fileOf(content: string | Buffer): Promise<DatasetFile> {
    const file = await datasetFile(content);
    files.push(file);
    return file;
  }

  async function serve(listener: RequestListener): Promise<string> {
    const server = await datasetServer(listener);
    servers.push(server);
    return server.url;
  }

  /** The folders of downloads that exist now. */
  async function downloads(): Promise<string[]> {
    const datasets = new Set(files.map(({ url }) => fileURLToPath(new URL('.', url))));
    return (await readdir(scratch)).filter((name) => !datasets.has(`${join(scratch, name)}/`));
  }

  async function expectRefused(url: string, message: string | RegExp): Promise<void> {
    await rejects(snapshotOf(url), { name: 'DatasetError', message });
    expect(await downloads(), 'left behind').to.deep.equal([]);
  }

  describe('from a file', () => {
    it('returns the text of a plain file any number of times', async () => {
      const { url } = await fileOf(CSV);
      const snapshot = await snapshotOf(url);
      expect(await textOf(snapshot)).to.equal(CSV);
      expect(await textOf(snapshot)).to.equal(CSV);
    });

    it('decompresses gzip, whatever the file name', async () => {
      const zipped = gzipSync(LONG_CSV);
      const { url } = await fileOf(zipped);
      expect(url).not.to.match(/gz$/);
      const snapshot = await snapshotOf(url);
      expect(await textOf(snapshot)).to.equal(LONG_CSV);
      expect(await textOf(snapshot)).to.equal(LONG_CSV);
    });

    it('decompresses gzip in several members', async () => {
      const { url } = await fileOf(Buffer.concat([gzipSync('name\n'), gzipSync('a\n')]));
      expect(await textOf(await snapshotOf(url))).to.equal('name\na\n');
    });

    it('accepts gzip that is padded with zeros', async () => {
      for (const length of [1, 100, 100_000]) {
        const { url } = await fileOf(Buffer.concat([gzipSync(CSV), Buffer.alloc(length)]));
        expect(await textOf(await snapshotOf(url))).to.equal(CSV);
      }
    });

    it('fails while reading if the gzip is followed by other data', async () => {
      const other = [
        Buffer.from('x'),
        Buffer.concat([Buffer.alloc(1), gzipSync(CSV)]),
        Buffer.concat([Buffer.alloc(100_000), Buffer.from('x')]),
        gzipSync(CSV).subarray(0, 1),
        gzipSync(CSV).subarray(0, -1),
      ];
      for (const rest of other) {
        const { url } = await fileOf(Buffer.concat([gzipSync(CSV), rest]));
        await rejects(textOf(await snapshotOf(url)), {
          name: 'DatasetError',
          message: /^the gzip is cut off or damaged: ./,
        });
      }
    });

    it('fails while reading gzip within gzip', async () => {
      const { url } = await fileOf(gzipSync(gzipSync(CSV)));
      await rejects(textOf(await snapshotOf(url)), {
        name: 'DatasetError',
        message: 'the gzip contains another gzip: compress the CSV once',
      });
    });

    it('reads files that are too short to detect their format', async () => {
      for (const content of [Buffer.of(), Buffer.of(0x1f), Buffer.from('a')]) {
        const { url } = await fileOf(content);
        expect(await textOf(await snapshotOf(url))).to.equal(content.toString());
      }
    });

    it('returns the digest of the original file', async () => {
      const zipped = gzipSync(CSV);
      expect((await snapshotOf((await fileOf(CSV)).url)).digest).to.equal(sha256(CSV));
      expect((await snapshotOf((await fileOf(zipped)).url)).digest).to.equal(sha256(zipped));
    });

    it('dates the snapshot by the last change of the file', async () => {
      const { url } = await fileOf(CSV);
      const time = new Date('2024-05-06T07:08:09Z');
      await utimes(fileURLToPath(url), time, time);
      expect((await snapshotOf(url)).takenAt).to.deep.equal(time);
    });

    it('uses the current time if the time of the file is in the future, or unknown', async () => {
      for (const time of [new Date('9999-12-31'), new Date(Date.now() + 3_600_000), new Date(0)]) {
        const { url } = await fileOf(CSV);
        await utimes(fileURLToPath(url), time, time);
        const before = Date.now();
        const { takenAt } = await snapshotOf(url);
        expect(takenAt.getTime()).to.be.within(before, Date.now());
      }
    });

    describe('with a date in its gzip header', () => {
      const compressedAt = new Date('2024-01-02T03:04:05Z');
      const changedAt = new Date('2024-05-06T07:08:09Z');

      async function takenAt(content: string | Buffer): Promise<Date> {
        const { url } = await fileOf(content);
        await utimes(fileURLToPath(url), changedAt, changedAt);
        return (await snapshotOf(url)).takenAt;
      }

      it('uses that date, even if the file was changed later', async () => {
        expect(await takenAt(gzipAt(CSV, compressedAt.getTime()))).to.deep.equal(compressedAt);
      });

      it('uses the last change of the file if that date is zero or in the future', async () => {
        for (const ms of [0, Date.now() + 3_600_000, 0xffffffff * 1000]) {
          expect(await takenAt(gzipAt(CSV, ms))).to.deep.equal(changedAt);
        }
      });

      it('uses the current time if that date is in the future by less than the clock skew', async () => {
        const before = Date.now();
        const date = await takenAt(gzipAt(CSV, before + 60_000));
        expect(date.getTime()).to.be.within(before, Date.now());
      });

      it('uses no date from a file that is not gzip, or too short', async () => {
        const zipped = gzipAt(CSV, compressedAt.getTime());
        const plain = Buffer.from(zipped);
        plain.writeUInt16BE(0x1f8c);
        for (const content of [plain, zipped.subarray(0, 7), Buffer.of(), CSV]) {
          expect(await takenAt(content)).to.deep.equal(changedAt);
        }
      });
    });

    it('keeps the snapshot when the file changes', async () => {
      const file = await fileOf(CSV);
      const snapshot = await snapshotOf(file.url);
      await file.write('something else');
      expect(await textOf(snapshot)).to.equal(CSV);
      expect(snapshot.digest).to.equal(sha256(CSV));
    });

    it('reads a file whose name must be encoded in a URL', async () => {
      const { url } = await fileOf(CSV);
      const path = join(fileURLToPath(new URL('.', url)), 'näme #1?%.csv');
      await copyFile(fileURLToPath(url), path);
      expect(await textOf(await snapshotOf(pathToFileURL(path).href))).to.equal(CSV);
    });

    it('rejects a missing file, and a folder', async () => {
      const { url } = await fileOf(CSV);
      await expectRefused(new URL('missing.csv', url).href, /^there is no file at the path in DATASET_URL$/);
      await expectRefused(
        new URL('.', url).href,
        /^the path in DATASET_URL is a folder: name the file in it$/,
      );
    });

    it('rejects a file that cannot be opened', async () => {
      const path = join(scratch, 'socket');
      const server = createServer().listen(path);
      await once(server, 'listening');
      await rejects(snapshotOf(pathToFileURL(path).href), {
        name: 'DatasetError',
        message: /^the dataset could not be downloaded: ENXIO/,
      });
      server.close();
      await once(server, 'close');
    });

    it('rejects a pipe, without waiting for a writer', async () => {
      const path = join(scratch, 'pipe');
      await once(spawn('mkfifo', [path], { stdio: 'ignore' }), 'exit');
      await rejects(snapshotOf(pathToFileURL(path).href), {
        name: 'DatasetError',
        message: 'the path in DATASET_URL is a pipe: name a file',
      });
      await rm(path);
    });

    it('ignores temporary files that another user left behind', async () => {
      // Root can delete everything, so the test changes the effective user; os.tmpdir() then ignores TMPDIR.
      const isRoot = process.geteuid?.() === 0;
      const folder = isRoot ? '/tmp' : scratch;
      const readable = await mkdtemp(join(folder, 'package-registry-search-test-'));
      await chmod(readable, 0o755);
      const path = join(readable, 'names.csv');
      await writeFile(path, CSV);
      const orphan = join(folder, 'package-registry-search-snapshot-4194303-1-a');
      await mkdir(join(orphan, 'inner'), { recursive: true });
      await chmod(orphan, 0o500);
      if (isRoot) process.seteuid?.(65_534);
      try {
        expect(await textOf(await snapshotOf(pathToFileURL(path).href))).to.equal(CSV);
      } finally {
        if (isRoot) process.seteuid?.(0);
        // A service that runs as root on this machine may have removed it.
        if (existsSync(orphan)) await chmod(orphan, 0o700);
        await rm(orphan, { recursive: true, force: true });
        await rm(readable, { recursive: true });
      }
    });

    it('rejects a spreadsheet', async () => {
      const { url } = await fileOf(Buffer.from('PK\x03\x04, and so on'));
      await rejects(textOf(await snapshotOf(url)), {
        name: 'DatasetError',
        message: 'this is a zip archive or a spreadsheet: save it as CSV, plain or gzip',
      });
    });

    it('fails while reading if the gzip is cut off or damaged', async () => {
      const zipped = gzipSync(LONG_CSV);
      const damaged = Buffer.from(zipped);
      damaged.fill(0, 1000, 2000);
      for (const content of [zipped.subarray(0, zipped.length - 1), zipped.subarray(0, 5), damaged]) {
        const { url } = await fileOf(content);
        await rejects(textOf(await snapshotOf(url)), {
          name: 'DatasetError',
          message: /^the gzip is cut off or damaged: ./,
        });
      }
    });

    it('can be read partially', async () => {
      for (const content of [LONG_CSV, gzipSync(LONG_CSV)]) {
        const { url } = await fileOf(content);
        const snapshot = await snapshotOf(url);
        for await (const chunk of snapshot.read()) {
          expect(chunk).to.be.an.instanceOf(Buffer);
          break;
        }
        expect(await textOf(snapshot)).to.equal(LONG_CSV);
      }
    });
  });

  describe('over HTTP', () => {
    it('returns the text and the digest of a plain response', async () => {
      const snapshot = await snapshotOf(await serve((_request, response) => response.end(LONG_CSV)));
      expect(await textOf(snapshot)).to.equal(LONG_CSV);
      expect(snapshot.digest).to.equal(sha256(LONG_CSV));
    });

    it('decompresses gzip, whatever the headers', async () => {
      const zipped = gzipSync(CSV);
      for (const headers of [{}, { 'Content-Type': 'text/csv' }, { 'Content-Encoding': 'gzip' }]) {
        const url = await serve((_request, response) => response.writeHead(200, headers).end(zipped));
        const snapshot = await snapshotOf(url);
        expect(await textOf(snapshot)).to.equal(CSV);
        expect(snapshot.digest).to.equal(sha256(zipped));
      }
    });

    it('dates the snapshot by Last-Modified', async () => {
      const headers = { 'Last-Modified': 'Mon, 06 May 2024 07:08:09 GMT' };
      const url = await serve((_request, response) => response.writeHead(200, headers).end(CSV));
      expect((await snapshotOf(url)).takenAt).to.deep.equal(new Date('2024-05-06T07:08:09Z'));
    });

    it('prefers Last-Modified to the date in the gzip header', async () => {
      const headers = { 'Last-Modified': 'Mon, 06 May 2024 07:08:09 GMT' };
      const zipped = gzipAt(CSV, Date.UTC(2024, 0, 1));
      const url = await serve((_request, response) => response.writeHead(200, headers).end(zipped));
      expect((await snapshotOf(url)).takenAt).to.deep.equal(new Date('2024-05-06T07:08:09Z'));
    });

    it('uses the date in the gzip header if Last-Modified is missing or implausible', async () => {
      const zipped = gzipAt(CSV, Date.UTC(2024, 0, 1));
      for (const date of [undefined, 'yesterday', new Date(0).toUTCString(), inMs(3_600_000)]) {
        const headers: Record<string, string> = date === undefined ? {} : { 'Last-Modified': date };
        const url = await serve((_request, response) => response.writeHead(200, headers).end(zipped));
        expect((await snapshotOf(url)).takenAt).to.deep.equal(new Date('2024-01-01T00:00:00Z'));
      }
    });

    it('uses the current time if the date in the gzip header is zero or in the future, too', async () => {
      for (const ms of [0, Date.now() + 3_600_000]) {
        const url = await serve((_request, response) => response.end(gzipAt(CSV, ms)));
        const before = Date.now();
        const { takenAt } = await snapshotOf(url);
        expect(takenAt.getTime()).to.be.within(before, Date.now());
      }
    });

    const inMs = (ms: number) => new Date(Date.now() + ms).toUTCString();
    const unknownDates: [what: string, lastModified: () => string | undefined][] = [
      ['missing', () => undefined],
      ['not a date', () => 'yesterday'],
      ['empty', () => ''],
      ['in the year 10000', () => 'Sat, 01 Jan 10000 00:00:00 GMT'],
      ['in the year 275760', () => 'Sat, 13 Sep 275760 00:00:00 GMT'],
      ['in the year 0', () => 'Sat, 01 Jan 0000 00:00:00 GMT'],
      ['before 1970', () => 'Fri, 01 Jan 1960 00:00:00 GMT'],
      ['the beginning of 1970, which servers send for unknown times', () => 'Thu, 01 Jan 1970 00:00:00 GMT'],
      ['a day that does not exist', () => 'Sat, 31 Feb 2024 00:00:00 GMT'],
      ['text with a number', () => 'version 3'],
      ['a number', () => '12'],
      ['an hour that does not exist', () => 'Thu, 01 Feb 2024 24:00:00 GMT'],
      ['an hour from now', () => inMs(3_600_000)],
      ['a minute from now, as from a fast clock', () => inMs(60_000)],
    ]; // prettier-ignore
    for (const [what, lastModified] of unknownDates) {
      it(`uses the current time if Last-Modified is ${what}`, async () => {
        const date = lastModified();
        const headers: Record<string, string> = date === undefined ? {} : { 'Last-Modified': date };
        const url = await serve((_request, response) => response.writeHead(200, headers).end(CSV));
        const before = Date.now();
        const { takenAt } = await snapshotOf(url);
        expect(takenAt.getTime()).to.be.within(before, Date.now());
      });
    }

    it('accepts Last-Modified in the obsolete format of asctime', async () => {
      const headers = { 'Last-Modified': 'Mon May  6 07:08:09 2024' };
      const url = await serve((_request, response) => response.writeHead(200, headers).end(CSV));
      expect((await snapshotOf(url)).takenAt.toISOString()).to.equal('2024-05-06T07:08:09.000Z');
    });

    it('accepts Last-Modified in the obsolete format of RFC 850', async () => {
      const headers = { 'Last-Modified': 'Monday, 06-May-24 07:08:09 GMT' };
      const url = await serve((_request, response) => response.writeHead(200, headers).end(CSV));
      expect((await snapshotOf(url)).takenAt).to.deep.equal(new Date('2024-05-06T07:08:09Z'));
    });

    it('follows at most five redirects', async () => {
      const redirecting = (times: number) =>
        serve((request, response) => {
          const hop = Number(new URL(request.url ?? '', 'http://any').searchParams.get('hop'));
          if (hop === times) response.end(CSV);
          else response.writeHead(302, { Location: `/?hop=${hop + 1}` }).end();
        });
      await expectRefused(await redirecting(6), "the dataset's server responded with 302 instead of 200");
      expect(await textOf(await snapshotOf(await redirecting(5)))).to.equal(CSV);
    });

    it('does not read the body of a redirect', async () => {
      const url = await serve((request, response) => {
        if (request.url === '/to') response.end(CSV);
        else response.writeHead(302, { Location: '/to' }).write('endless');
      });
      expect(await textOf(await snapshotOf(url))).to.equal(CSV);
    });

    it('rejects redirect loops, and redirects to anything but HTTP addresses', async () => {
      const redirecting = (location: string) =>
        serve((_request, response) => response.writeHead(302, { Location: location }).end());
      await expectRefused(await redirecting(''), "the dataset's server responded with 302 instead of 200");
      for (const location of [
        'http://[',
        'file:///etc/hostname',
        'ftp://registry.example/',
        'data:text/csv,name',
      ]) {
        await expectRefused(
          await redirecting(location),
          "the dataset's server redirects to something that is not an http(s) address",
        );
      }
    });

    it('rejects an unsupported content encoding', async () => {
      for (const encoding of ['br', 'deflate', 'zstd', 'gzip, gzip', 'x'.repeat(1000)]) {
        const headers = { 'Content-Encoding': encoding };
        const url = await serve((_request, response) => response.writeHead(200, headers).end(CSV));
        await expectRefused(
          url,
          /^the dataset's server uses the content encoding ".+"…?: only gzip is supported$/,
        );
      }
    });

    for (const status of [204, 206, 304, 400, 403, 404, 410, 500, 503]) {
      it(`rejects a response with status ${status}`, async () => {
        const url = await serve((_request, response) => {
          response.writeHead(status).end(status === 204 || status === 304 ? undefined : CSV);
        });
        await expectRefused(url, `the dataset's server responded with ${status} instead of 200`);
      });
    }

    it('rejects a truncated response, with and without a length', async () => {
      for (const headers of [{ 'Content-Length': String(LONG_CSV.length) }, {}]) {
        const url = await serve((_request, response) => {
          response.writeHead(200, headers);
          response.write(LONG_CSV.slice(0, 100_000), () => response.destroy());
        });
        await expectRefused(url, /^the dataset could not be downloaded: ./);
      }
    });

    describe('from a server that closes the connection', () => {
      // Sends everything at once, so that the connection ends long before the data is stored.
      const serveRaw = async (head: string, body: string, close = (socket: Socket) => void socket.end()) => {
        const server = createServer((socket) => {
          socket.on('error', () => undefined);
          socket.once('data', () => socket.write(`${head}\r\n\r\n${body}`, () => close(socket)));
        }).listen(0, '127.0.0.1');
        await once(server, 'listening');
        const { port } = server.address() as AddressInfo;
        const stop = () => new Promise<void>((resolve) => server.close(() => resolve()));
        const url = `http://127.0.0.1:${port}/`;
        servers.push({ url, close: stop });
        return url;
      };
      const length = `Content-Length: ${LONG_CSV.length}`;

      const complete: [what: string, head: string][] = [
        ['with Connection: close', `HTTP/1.1 200 OK\r\nConnection: close\r\n${length}`],
        ['without Connection: close', `HTTP/1.1 200 OK\r\n${length}`],
        ['by HTTP/1.0', `HTTP/1.0 200 OK\r\n${length}`],
        ['without a length', 'HTTP/1.1 200 OK\r\nConnection: close'],
      ];
      for (const [what, head] of complete) {
        it(`accepts a complete response ${what}`, async () => {
          for (let i = 0; i < 5; i++) {
            expect(await textOf(await snapshotOf(await serveRaw(head, LONG_CSV)))).to.equal(LONG_CSV);
          }
        });
      }

      it('rejects a response that is shorter than its length', async () => {
        for (const head of [
          `HTTP/1.1 200 OK\r\nConnection: close\r\n${length}`,
          `HTTP/1.0 200 OK\r\n${length}`,
        ]) {
          await expectRefused(
            await serveRaw(head, LONG_CSV.slice(0, -34)),
            'the dataset could not be downloaded: the connection was closed before the end',
          );
        }
      });

      it('rejects a response without a length whose connection is reset', async () => {
        const reset = (socket: Socket) => void setTimeout(() => socket.resetAndDestroy(), 200);
        await expectRefused(
          await serveRaw('HTTP/1.1 200 OK', LONG_CSV, reset),
          /^the dataset could not be downloaded: ./,
        );
      });

      it('rejects invalid HTTP, in the first line or in the body', async () => {
        for (const head of [
          'x'.repeat(60_000),
          `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(60_000)}`,
          'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nthis is no length',
          'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5',
          'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6',
          'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade',
        ]) {
          await expectRefused(await serveRaw(head, CSV), /^the dataset could not be downloaded: ./);
        }
      });
    });

    it('fails if the server closes the connection without a response', async () => {
      const url = await serve((request) => request.socket.destroy());
      await expectRefused(url, /^the dataset could not be downloaded: ./);
    });

    it('fails if the server is unreachable', async () => {
      const server = await datasetServer(() => undefined);
      await server.close();
      await expectRefused(server.url, /^the dataset could not be downloaded: .*ECONNREFUSED/);
    });

    it('revalidates by ETag or Last-Modified, only with the address that sent them', async () => {
      const asked: (string | undefined)[] = [];
      let headers: Record<string, string> = {
        ETag: '"one"',
        'Last-Modified': 'Wed, 01 Jul 2026 00:00:00 GMT',
      };
      const url = await serve((request, response) => {
        const condition = request.headers['if-none-match'] ?? request.headers['if-modified-since'];
        asked.push(condition);
        const same = condition !== undefined && Object.values(headers).includes(condition);
        response.writeHead(same ? 304 : 200, headers).end(same ? undefined : CSV);
      });
      const { validators: known } = await snapshotOf(url);
      expect(await download(url, NEVER, { timeoutMs, known })).to.be.undefined;
      headers = { 'Last-Modified': 'Wed, 01 Jul 2026 00:00:00 GMT' };
      const { validators: dated } = await snapshotOf(url);
      expect(await download(url, NEVER, { timeoutMs, known: dated })).to.be.undefined;
      headers = { ETag: '"two"' };
      for (const [address, before] of [
        [url, known],
        [`${url}?other`, known],
        [url, undefined],
      ] as const) {
        const changed = await download(address, NEVER, { timeoutMs, known: before });
        if (changed === undefined) throw new Error('expected a changed dataset');
        snapshots.push(changed);
        expect(await textOf(changed)).to.equal(CSV);
      }
      const modified = 'Wed, 01 Jul 2026 00:00:00 GMT';
      expect(asked).to.deep.equal([undefined, '"one"', undefined, modified, '"one"', undefined, undefined]);
    });

    it('returns no validators if the server sends none', async () => {
      expect((await snapshotOf(await serve((_request, response) => response.end(CSV)))).validators).to.be
        .undefined;
    });

    it('rejects a 304 to an unconditional request', async () => {
      const url = await serve((_request, response) => response.writeHead(304).end());
      await expectRefused(url, "the dataset's server responded with 304 instead of 200");
    });

    it('rejects a dataset larger than the free space before its first byte arrives', async () => {
      const url = await serve((_request, response) => {
        response.writeHead(200, { 'Content-Length': String(2 ** 52) }).write('name,url\n');
      });
      await expectRefused(
        url,
        /^the dataset has 4503599627370496 bytes, and the temporary folder has room for \d+/,
      );
    });

    it('rejects a dataset that is too large, as sent or decompressed', async () => {
      const plain = await serve((_request, response) => response.end(LONG_CSV));
      await rejects(download(plain, NEVER, { timeoutMs, maxBytes: 10_000 }), {
        name: 'DatasetError',
        message: 'the dataset is larger than 10000 bytes',
      });
      expect(await downloads(), 'left behind').to.deep.equal([]);

      const bomb = gzipSync(LONG_CSV);
      const maxBytes = LONG_CSV.length - 1;
      expect(bomb.length).to.be.lessThan(maxBytes);
      const url = await serve((_request, response) => response.end(bomb));
      const snapshot = await download(url, NEVER, { timeoutMs, maxBytes });
      if (snapshot === undefined) throw new Error('download returned no snapshot');
      snapshots.push(snapshot);
      await rejects(textOf(snapshot), {
        name: 'DatasetError',
        message: `the dataset is larger than ${maxBytes} bytes`,
      });
    });

    describe('from a slow server', () => {
      const windowMs = 300;
      /** Sends one byte of `bytes` every 20 ms. */
      const trickle = (send: (byte: Buffer) => unknown, bytes: Buffer, isOver: () => boolean) => {
        let at = 0;
        const timer = setInterval(() => {
          if (at === bytes.length || isOver()) clearInterval(timer);
          else send(bytes.subarray(at, ++at));
        }, 20);
      };
      const LATE = 'the dataset could not be downloaded: its server did not respond within 0.3 s';
      const SLOW = 'the dataset could not be downloaded: fewer than 10240 bytes arrived within 0.3 s';

      const slow: [what: string, listener: RequestListener, message: string][] = [
        ['never responds', () => undefined, LATE],
        [
          'trickles its headers',
          ({ socket }) => {
            const head = Buffer.from(`HTTP/1.1 200 OK\r\n${'X-Header: x\r\n'.repeat(50)}\r\n`);
            trickle((byte) => socket.write(byte), head, () => socket.destroyed);
          },
          LATE,
        ],
        [
          'sends early hints forever',
          (_request, response) => {
            const timer = setInterval(() => {
              response.writeEarlyHints({ link: '</style.css>; rel=preload' });
            }, 20);
            response.on('close', () => clearInterval(timer));
          },
          LATE,
        ],
        ['sends headers and nothing else', (_request, response) => response.writeHead(200).flushHeaders(), SLOW],
        [
          'trickles the body',
          (_request, response) => {
            trickle((byte) => response.write(byte), Buffer.from(LONG_CSV), () => response.destroyed);
          },
          SLOW,
        ],
        [
          'trickles the end of the body',
          (_request, response) => {
            response.write(LONG_CSV);
            trickle((byte) => response.write(byte), Buffer.from(LONG_CSV), () => response.destroyed);
          },
          SLOW,
        ],
        ['sends everything but the end', (_request, response) => response.write(CSV), SLOW],
      ]; // prettier-ignore
      for (const [what, listener, message] of slow) {
        it(`gives up if it ${what}`, async () => {
          const url = await serve(listener);
          await rejects(snapshotOf(url, NEVER, { windowMs }), { name: 'DatasetError', message });
          expect(await downloads(), 'left behind').to.deep.equal([]);
        });
      }

      it('waits for a small file, and for the last piece of a large one', async () => {
        for (const [start, end] of [
          ['name,', 'url\n'],
          [LONG_CSV, 'a,https://registry.example/a\n'],
        ] as const) {
          const url = await serve((_request, response) => {
            response.write(start);
            setTimeout(() => response.end(end), windowMs / 2);
          });
          expect(await textOf(await snapshotOf(url, NEVER, { windowMs }))).to.equal(start + end);
        }
      });

      it('gives up at the deadline, however fast the bytes arrive', async () => {
        const url = await serve((_request, response) => {
          const timer = setInterval(() => response.write(LONG_CSV.slice(0, 20_000)), 20);
          response.on('close', () => clearInterval(timer));
        });
        const began = performance.now();
        await rejects(snapshotOf(url, NEVER, { timeoutMs: 1000 }), {
          name: 'DatasetError',
          message: 'the dataset could not be downloaded within 1 s (DATASET_DOWNLOAD_TIMEOUT_SECONDS)',
        });
        expect(performance.now() - began).to.be.within(990, 5000);
        expect(await downloads(), 'left behind').to.deep.equal([]);
      });

      it('counts redirects towards the deadline', async () => {
        const url = await serve((_request, response) => {
          setTimeout(() => response.writeHead(302, { Location: '/' }).end(), 200);
        });
        await rejects(snapshotOf(url, NEVER, { timeoutMs: 500, windowMs }), /within 0.5 s/);
        expect(await downloads(), 'left behind').to.deep.equal([]);
      });
    });

    it('stops when aborted, before and during the response', async () => {
      const waiting: RequestListener[] = [
        () => undefined,
        (_request, response) => response.writeHead(200).write('name\n'),
      ];
      for (const listener of waiting) {
        const stop = new AbortController();
        const url = await serve((request, response) => {
          listener(request, response);
          setTimeout(() => stop.abort(new Error('the server is stopping')), 50);
        });
        await rejects(snapshotOf(url, stop.signal), (error: Error) => error.name !== 'DatasetError');
        expect(await downloads(), 'left behind').to.deep.equal([]);
      }
    });
  });

  describe('with little free space', () => {
    const MEBIBYTE = 2 ** 20;
    const ROOM = 8 * MEBIBYTE;
    const chunk = Buffer.alloc(64 * 1024, 'a,https://registry.example/a\n');
    const NO_ROOM = {
      name: 'DatasetError',
      message: /^the dataset has more than \d+ bytes, and the temporary folder has no room for more$/,
    };
    /** A file system that nothing else writes to, if any: only this test changes its free space. */
    const quiet = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
    let small: string;

    beforeEach(async () => {
      small = await mkdtemp(join(quiet, 'package-registry-search-test-'));
      env['TMPDIR'] = small;
    });
    afterEach(async () => {
      env['TMPDIR'] = scratch;
      await rm(small, { recursive: true });
    });

    async function freeBytes(): Promise<number> {
      const { bavail, bsize } = await statfs(small);
      return bavail * bsize;
    }

    /** Downloads with `ROOM` bytes beyond the reserved ones, and asserts that the reserve stays free. */
    async function expectNoRoom(url: string): Promise<void> {
      const roomForOthers = (await freeBytes()) - ROOM;
      let least = Infinity;
      let isOver = false;
      const watch = async () => {
        while (!isOver) least = Math.min(least, await freeBytes());
      };
      const watching = watch();
      await rejects(
        snapshotOf(url, NEVER, { reservedBytes: roomForOthers, maxBytes: 5 * ROOM }),
        NO_ROOM,
      ).finally(() => (isOver = true));
      await watching;
      expect(least).to.be.within(roomForOthers, roomForOthers + 3 * MEBIBYTE);
      expect(await readdir(small), 'left behind').to.deep.equal([]);
    }

    it('stops a download of unknown length while reserved space is left', async () => {
      const url = await serve((_request, response) => {
        Readable.from(Array.from({ length: 640 }, () => chunk)).pipe(response);
      });
      await expectNoRoom(url);
    });

    it('stops copying a file that is longer than its reported size', async () => {
      await expectNoRoom('file:///dev/zero');
    });

    it('stops a slow download when others fill the disk', async () => {
      const url = await serve((_request, response) => {
        const timer = setInterval(() => response.write(chunk.subarray(0, 10_000)), 20);
        setTimeout(() => response.end(), 6000);
        response.on('close', () => clearInterval(timer));
      });
      const roomForOthers = (await freeBytes()) - ROOM;
      setTimeout(() => void writeFile(join(small, 'of-others'), Buffer.alloc(ROOM)), 200);
      await rejects(snapshotOf(url, NEVER, { reservedBytes: roomForOthers }), NO_ROOM);
      expect(await readdir(small), 'left behind').to.deep.equal(['of-others']);
    });

    it('accepts a dataset that fits', async () => {
      const url = await serve((_request, response) => response.end(LONG_CSV));
      const roomForOthers = (await freeBytes()) - ROOM;
      expect(await textOf(await snapshotOf(url, NEVER, { reservedBytes: roomForOthers }))).to.equal(LONG_CSV);
      await Promise.all(snapshots.splice(0).map((snapshot) => snapshot.remove()));
    });
  });

  describe('cleanup', () => {
    it('deletes the temporary folder, and can be repeated', async () => {
      const snapshot = await snapshotOf((await fileOf(CSV)).url);
      const [folder, ...others] = await downloads();
      expect(folder).to.match(/^package-registry-search-/);
      expect(others).to.deep.equal([]);
      await snapshot.remove();
      expect(await downloads()).to.deep.equal([]);
      await snapshot.remove();
    });

    it('removes leftovers of killed processes, not of live ones', async () => {
      const ended = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
      await once(ended, 'exit');
      const folder = (pid: number | undefined) => `package-registry-search-snapshot-${pid}-1234567890123-abc`;
      // The last one is from an earlier process with the pid of this one.
      const [alive, ...dead] = [process.ppid, ended.pid, process.pid].map(folder) as [string, string, string];
      for (const name of [alive, ...dead]) await mkdir(join(scratch, name));
      const file = await fileOf(CSV);
      const own = await snapshotOf(file.url);
      await snapshotOf(file.url);
      expect(await readdir(scratch))
        .to.include(alive)
        .and.not.to.include.members([dead[0]])
        .and.not.to.include.members([dead[1]]);
      expect(await textOf(own)).to.equal(CSV);
      await rm(join(scratch, alive), { recursive: true });
    });

    it('keeps the original file and other snapshots of it', async () => {
      const { url } = await fileOf(CSV);
      const [first, second] = [await snapshotOf(url), await snapshotOf(url)];
      await first.remove();
      expect(await textOf(second)).to.equal(CSV);
      expect((await stat(fileURLToPath(url))).size).to.equal(Buffer.byteLength(CSV));
    });
  });
});
