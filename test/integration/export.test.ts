import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { expectInvalid, expectProblem } from '../support/expect-problem.js';
import { logLines, startService, useService, type Service, type TestResponse } from '../support/service.js';
import { useReplicaStarter } from '../support/replica-starter.js';
import { waitFor } from '../support/wait-for.js';

const WILD_NAMES = ['com,ma', 'quo"te', '"quoted"', "'=1+1", 'café', '日本語', '🚀', 'line\u2028separator', 'x'.repeat(512)]; // prettier-ignore

/** Package numbers with gaps, in no order. */
const PACKAGES: PackageEntry[] = [
  ...packagesNamed(WILD_NAMES),
  ...bundledPackages().filter(({ name }, i) => i % 40 === 0 && !WILD_NAMES.includes(name)),
].map((entry, i, { length }) => ({ ...entry, no: 7 * (length - i), weight: i % 2 === 0 ? 0 : i }));

const BY_NUMBER = PACKAGES.toSorted((a, b) => a.no - b.no);

/** Long enough for a socket not to hold it: 24 MB. */
const LONG = packagesNamed(Array.from({ length: 12_000 }, (_, i) => `long-${i}`)).map((entry) => ({
  ...entry,
  url: `https://registry.example/${'x'.repeat(2000)}`,
}));

/** Starts an export and returns the response with an unread body. */
async function open({ url }: Service, headers = {}): Promise<IncomingMessage> {
  const request = get(`${url}/export`, { headers, agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  // A reader gets errors when it reads; an earlier one must not end the process.
  for (const emitter of [request, response]) emitter.on('error', () => undefined);
  return response;
}

/** The same once one of the places is free: those of responses that were destroyed are not free at once. */
async function openOnceFree(service: Service, headers = {}): Promise<IncomingMessage> {
  let response = await open(service, headers);
  await waitFor(async () => {
    if (response.statusCode === 200) return true;
    response.destroy();
    response = await open(service, headers);
    return false;
  }, 'a free place');
  return response;
}

/** Starts an export by HTTP/1.0 and returns the socket, which is not read. */
async function openByHttp10(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  // Half-open, so that `resetOf` can write after an end.
  const options = { host: hostname, port: Number(port), allowHalfOpen: true };
  const socket = connect(options).on('error', () => undefined);
  socket.write('GET /export HTTP/1.0\r\n\r\n');
  await once(socket, 'readable');
  return socket.pause();
}

/**
 * Sends a byte to find out whether a connection was reset. Reading does not tell: libuv takes a reset that it finds
 * behind data for the end.
 * @returns the error; null if the byte could be sent.
 */
function resetOf(socket: Socket): Promise<Error | null | undefined> {
  return new Promise((resolve) => socket.write('x', resolve));
}

/** Reads the rest of a body. @returns its length; undefined if it was cut off. */
async function lengthOf(response: IncomingMessage): Promise<number | undefined> {
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) length += chunk.length;
    return length;
  } catch {
    return undefined;
  }
}

describe('GET /export', function () {
  this.timeout(60_000);
  const suite = useService(() => PACKAGES);
  const startReplica = useReplicaStarter(suite);

  it('is a dataset with all packages by number, whose names and weights are unchanged', async () => {
    const answer = await suite.service.get('/export');
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('Content-Type')).to.equal('text/csv; charset=utf-8');
    const id = await suite.service.snapshot();
    expect(answer.headers.get('X-Snapshot')).to.equal(id);
    const disposition = `attachment; filename="${suite.service.slug}-${id}.csv"`;
    expect(answer.headers.get('Content-Disposition')).to.equal(disposition);
    expect(answer.text).to.equal(toCsv(BY_NUMBER));
  });

  it('is one entry a line as JSON lines', async () => {
    const answer = await suite.service.get('/export?format=jsonl');
    expect(answer.headers.get('Content-Type')).to.equal('application/x-ndjson; charset=utf-8');
    expect(answer.headers.get('Content-Disposition')).to.match(/\.jsonl"$/);
    const lines = answer.text.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as PackageEntry)).to.deep.equal(BY_NUMBER);
  });

  it('is gzip for clients that accept it, never br', async () => {
    for (const [accepted, encoding] of [
      ['gzip, br', 'gzip'],
      ['br', undefined],
      ['', undefined],
    ] as const) {
      const response = await open(suite.service, { 'Accept-Encoding': accepted });
      expect(response.headers['content-encoding']).to.equal(encoding);
      expect(response.headers['vary']).to.equal('Accept-Encoding');
      const body = Buffer.concat((await response.toArray()) as Buffer[]);
      expect((encoding ? gunzipSync(body) : body).toString()).to.equal(toCsv(BY_NUMBER));
    }
  });

  it('can be of the previous snapshot', async () => {
    const first = await suite.service.get('/export');
    const tagOf = ({ headers }: TestResponse) => headers.get('ETag');
    await suite.publish(PACKAGES.slice(0, 1200));
    expect(tagOf(await suite.service.get('/export'))).not.to.equal(tagOf(first));
    const previous = await suite.service.get(`/export?snapshot=${first.headers.get('X-Snapshot')}`);
    expect([previous.text, tagOf(previous)]).to.deep.equal([first.text, tagOf(first)]);
  });

  it('rejects other formats and snapshots', async () => {
    await expectInvalid(suite.service, '/export?format=xml', '/export?snapshot=x');
    const gone = await suite.service.get('/export?snapshot=20200101t000000z-00000000');
    expectProblem(gone, 410, 'snapshot_gone');
  });

  for (const [what, packages] of [
    ['with numbers and weights', () => toCsv(PACKAGES)],
    ['without both', () => toCsv(PACKAGES).replaceAll(/^(package_no|\d+),|,(weight|\d+)$/gm, '')],
  ] as const) {
    it(`is a dataset whose snapshot has no changes, ${what}`, async () => {
      await suite.publish(packages());
      const { text } = await suite.service.get('/export');
      expect(text.split('\n', 1)).to.deep.equal(packages().split('\n', 1));
      await suite.publish(text);
      expect((await suite.service.get('/changes')).body).to.include({ count: 0 });
      expect((await suite.service.get('/export')).text).to.equal(text);
    });
  }

  it('costs a tenth of the limit, rounded up', async () => {
    const replica = await startReplica({ RATE_LIMIT_POINTS: '25' });
    const answer = await replica.get('/export', { method: 'HEAD' });
    expect(answer.headers.get('RateLimit')).to.match(/^"reading";r=22;t=\d+$/);
  });
});

describe('A long export', function () {
  this.timeout(120_000);
  const suite = useService(
    () => LONG,
    () => ({ CHANGES_RETENTION: '0' }),
  );

  it('gets 503 while two others run', async () => {
    const [first, second] = [await open(suite.service), await open(suite.service)];
    const answer = await suite.service.get('/export');
    expectProblem(answer, 503, 'search_unavailable');
    expect(answer.headers.get('Retry-After')).to.equal('10');
    first.destroy();
    await waitFor(async () => {
      const head = await suite.service.get('/export', { method: 'HEAD' });
      return head.status === 200;
    }, 'a free place');
    expect(await lengthOf(second)).to.equal(Buffer.byteLength(toCsv(LONG)));
  });

  it('frees its place when the client closes a connection on which a second one waits', async () => {
    const { hostname, port } = new URL(suite.service.url);
    const socket = connect(Number(port), hostname);
    const { host } = new URL(suite.service.url);
    socket.write(`GET /export HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(2));
    await once(socket, 'readable');
    await waitFor(
      async () => (await suite.service.get('/export', { method: 'HEAD' })).status === 503,
      'two exports',
    );
    socket.destroy();
    await waitFor(async () => {
      const two = await Promise.all([open(suite.service), open(suite.service)]);
      for (const response of two) response.destroy();
      return two.every(({ statusCode }) => statusCode === 200);
    }, 'two free places');
  });

  it('that its client ends is not reported as cut off', async () => {
    const reports = () => logLines.filter(({ msg }) => msg === 'an export was cut off');
    const before = reports();
    for (const headers of [{}, { 'Accept-Encoding': 'gzip' }]) {
      const response = await openOnceFree(suite.service, headers);
      for (let length = 0; length < 50_000;) {
        const [chunk] = (await once(response, 'data')) as [Buffer];
        length += chunk.length;
      }
      response.destroy();
    }
    (await openOnceFree(suite.service)).destroy();
    expect(reports()).to.deep.equal(before);
  });

  describe('whose snapshot is pruned', () => {
    let plain: IncomingMessage;
    let zipped: IncomingMessage;
    let replica: Service;
    let byHttp10: Socket;

    before(async () => {
      plain = await openOnceFree(suite.service);
      zipped = await openOnceFree(suite.service, { 'Accept-Encoding': 'gzip' });
      // Another replica has free places.
      replica = await startService({ DATASET_URL: suite.dataset.url }, suite.service.slug);
      byHttp10 = await openByHttp10(replica.url);
      plain.pause();
      for (let i = 0; i < 2; i++) await suite.publish(packagesNamed(['a', 'b']));
    });

    after(async () => {
      zipped.destroy();
      await replica.stop();
    });

    it('is cut off', async () => {
      expect(await suite.service.indices()).to.have.length(2);
      expect(await lengthOf(plain)).to.equal(undefined);
    });

    it('is cut off by a reset for HTTP/1.0, whose responses end with the connection', async () => {
      // It may have been reset already.
      const failed =
        byHttp10.errored ??
        new Promise<unknown>((resolve) => {
          byHttp10.once('error', resolve);
          byHttp10.once('end', () => void resetOf(byHttp10).then(resolve));
        });
      byHttp10.resume();
      expect(await failed).to.have.property('code', 'ECONNRESET');
    });
  });
});
