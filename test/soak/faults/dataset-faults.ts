import type { RequestListener } from 'node:http';
import { gzipSync } from 'node:zlib';
import { pick } from '../../../fixtures/random.js';
import { trickled } from '../../support/dataset-server.js';
import { toCsv } from '../../support/datasets.js';
import type { Stack } from '../stack.js';
import { ANY_REASON, type Fault } from './fault.js';

/** Rebuilds while the dataset's server responds in another way. */
async function withOrigin(stack: Stack, listener: RequestListener, work: () => Promise<void>): Promise<void> {
  stack.respondWith = listener;
  try {
    await work();
  } finally {
    stack.respondWith = undefined;
  }
}

/** A response that must be rejected. */
function rejected(respond: (stack: Stack) => RequestListener, reason: RegExp, params = ''): Fault['inject'] {
  return (stack) => withOrigin(stack, respond(stack), () => stack.rebuildFails(reason, params));
}

/** A dataset that must be rejected. */
function rejectedCsv(csv: (stack: Stack) => string | Buffer, reason: RegExp, params = ''): Fault['inject'] {
  return rejected((stack) => (_request, response) => response.end(csv(stack)), reason, params);
}

export const datasetFaults: Fault[] = [
  {
    name: 'a download cut off',
    rows: ['the download is cut off, even at the last byte'],
    inject: rejected(
      ({ variant, random }) =>
        (_request, response) => {
          const missing = pick(random, [1, 100, 100_000]);
          response.setHeader('Content-Length', Buffer.byteLength(variant.csv));
          response.write(variant.csv.slice(0, -missing), () => response.destroy());
        },
      ANY_REASON,
    ),
  },
  {
    name: 'not a dataset',
    rows: ['404, 500, an HTML page, an empty or a cut file'],
    inject: async (stack) => {
      const responses: RequestListener[] = [
        (_request, response) => response.writeHead(404).end(),
        (_request, response) => response.writeHead(500).end(),
        (_request, response) => response.end('<!doctype html><title>Welcome</title>'),
        (_request, response) => response.end(),
      ];
      await rejected(() => pick(stack.random, responses), ANY_REASON)(stack);
    },
  },
  {
    name: 'a damaged gzip file',
    rows: ['gzip is cut off, damaged, or a bomb'],
    inject: rejectedCsv(({ variant, random }) => {
      const bytes = gzipSync(variant.csv);
      if (random() < 0.5) return bytes.subarray(0, -1000);
      bytes.fill(0xff, 5000, 5100);
      return bytes;
    }, ANY_REASON),
  },
  {
    name: 'a stalled download',
    rows: ['fewer than 10 KiB arrive in 30 s'],
    isSlow: true,
    inject: rejected(() => trickled('package_no,name,version,url\n', 10, 1000), ANY_REASON),
  },
  {
    name: 'a download without end',
    rows: ['`DATASET_DOWNLOAD_TIMEOUT_SECONDS` is exceeded'],
    isSlow: true,
    inject: rejected(() => trickled('package_no,name,version,url\n', 10_000, 500), ANY_REASON),
  },
  {
    name: 'an invalid row',
    rows: ['an invalid row of any kind ¹'],
    inject: rejectedCsv(({ variant }) => `${variant.csv}x,no-number,1,https://registry.example/\n`, /line/),
  },
  {
    name: 'half as many packages',
    rows: ['half as many packages as before'],
    inject: rejectedCsv(
      ({ variant: { byNumber } }) => toCsv(byNumber.slice(0, byNumber.length / 2)),
      /smaller|fewer|shrink|packages/,
    ),
  },
  {
    name: 'no packages',
    rows: ['no packages'],
    inject: rejectedCsv(() => toCsv([]), ANY_REASON, '&force=true'),
  },
  {
    name: 'an impossible date',
    rows: ['the server sends an impossible date'],
    inject: (stack) =>
      withOrigin(
        stack,
        (_request, response) => {
          response.setHeader('Last-Modified', 'Fri, 31 Feb 2026 25:61:00 GMT');
          response.end(stack.variant.csv);
        },
        () => stack.rebuild(),
      ),
  },
  {
    name: 'most names changed',
    rows: ['more than half of all names changed'],
    inject: async (stack) => {
      await stack.rebuildFrom(stack.renamed);
      await stack.rebuild();
    },
  },
];
