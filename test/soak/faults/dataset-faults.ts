import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { pick } from '../../fixtures/random.js';
import { trickled } from '../../support/dataset-server.js';
import { toCsv } from '../../support/datasets.js';
import type { Stack } from '../stack.js';
import type { Variant } from '../snapshots.js';
import { ANY_REASON, fault, type Fault } from './fault.js';

/** Runs `work` while the dataset's server responds in another way. */
async function withOrigin(
  { origin }: Stack,
  listener: RequestListener,
  work: () => Promise<void>,
): Promise<void> {
  origin.respondWith = listener;
  await work().finally(() => (origin.respondWith = undefined));
}

/** Responds with something in the place of the state of the dataset that would be served. */
type Respond = (
  response: ServerResponse,
  variant: Variant,
  random: () => number,
  request: IncomingMessage,
) => unknown;

/** A response that must be rejected. */
function rejected(name: string, rows: string[], respond: Respond, reason = ANY_REASON, params = ''): Fault {
  return fault(name, rows, (stack) =>
    withOrigin(
      stack,
      (request, response) => void respond(response, stack.origin.variant, stack.random, request),
      () => stack.rebuildFails(reason, params),
    ),
  );
}

const HEADER = 'package_no,name,version,url\n';

export const datasetFaults: Fault[] = [
  rejected(
    'a cut download',
    ['the download is cut off, even at the last byte'],
    (response, { csv }, random) => {
      const missing = pick(random, [1, 100, 100_000]);
      response.setHeader('Content-Length', Buffer.byteLength(csv));
      response.write(csv.slice(0, -missing), () => response.destroy());
    },
  ),
  rejected(
    'not a dataset',
    ['404, 500, an HTML page, an empty or a cut file'],
    (response, _variant, random) => {
      const [status, body] = pick<[number, string]>(random, [
        [404, ''],
        [500, ''],
        [200, '<!doctype html><title>Welcome</title>'],
        [200, ''],
      ]);
      response.writeHead(status).end(body);
    },
  ),
  rejected('a damaged gzip file', ['gzip is cut off, damaged, or a bomb'], (response, { csv }, random) => {
    const bytes = gzipSync(csv);
    response.end(random() < 0.5 ? bytes.subarray(0, -1000) : bytes.fill(0xff, 5000, 5100));
  }),
  {
    ...rejected(
      'a stalled download',
      ['fewer than 10 KiB arrive in 30 s'],
      (response, _variant, _random, request) => trickled(HEADER, 10, 1000)(request, response),
    ),
    isSlow: true,
  },
  {
    ...rejected(
      'a download without end',
      ['`DATASET_DOWNLOAD_TIMEOUT_SECONDS` is exceeded'],
      (response, _variant, _random, request) => trickled(HEADER, 10_000, 500)(request, response),
    ),
    isSlow: true,
  },
  rejected(
    'an invalid row',
    ['an invalid row of any kind ¹'],
    (response, { csv }) => response.end(`${csv}x,no-number,1,https://registry.example/\n`),
    /line/,
  ),
  rejected(
    'half as many packages',
    ['half as many packages as before'],
    (response, { byNumber }) => response.end(toCsv(byNumber.slice(0, byNumber.length / 2))),
    /smaller|fewer|shrink|packages/,
  ),
  rejected('no packages', ['no packages'], (response) => response.end(HEADER), ANY_REASON, '&force=true'),
  fault('an impossible date', ['the server sends an impossible date'], (stack) =>
    withOrigin(
      stack,
      (_request, response) => {
        response.setHeader('Last-Modified', 'Fri, 31 Feb 2026 25:61:00 GMT');
        response.end(stack.origin.variant.csv);
      },
      () => stack.rebuild(),
    ),
  ),
  fault('most names changed', ['more than half of all names changed'], async (stack) => {
    await stack.rebuildFrom(stack.renamed);
    await stack.rebuild();
  }),
];
