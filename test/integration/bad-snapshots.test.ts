import { rejects } from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { expect } from 'chai';
import { DEFAULT_SLUG, readConfig } from '../../src/config/config.js';
import { createLogger } from '../../src/util/log.js';
import { UNLOCKED } from '../support/step.js';
import { createRebuildContext } from '../../src/rebuild/rebuild-context.js';
import { rebuild } from '../../src/rebuild/pipeline.js';
import { NO_DATASET } from '../../src/rebuild/plan.js';
import { datasetServer, trickled, type DatasetServer } from '../support/dataset-server.js';
import { bundledPackages, packagesNamed, toCsv } from '../support/datasets.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { useService } from '../support/service.js';

const OLD = bundledPackages().slice(300, 900);
const HALF = OLD.slice(0, 300);
const CSV = toCsv(OLD);

const answer =
  (body: string): RequestListener =>
  (_request, response) =>
    response.end(body);

describe('A bad snapshot', function () {
  this.timeout(60_000);
  const origin = { listener: answer(CSV) };
  let server: DatasetServer;
  before(async () => {
    server = await datasetServer((request, response) => origin.listener(request, response));
  });
  const suite = useService(
    () => OLD,
    () => ({ DATASET_URL: server.url, DATASET_DOWNLOAD_TIMEOUT_SECONDS: '1', ...UNCACHED }),
  );
  after(() => server.close());
  const reading = useBackgroundReader(suite, [OLD.length, HALF.length]);
  /** @returns the reason for which a dataset was rejected. */
  const rebuildFrom = async (listener: RequestListener, params = '') => {
    origin.listener = listener;
    expect((await suite.service.rebuild(params)).status).to.equal(202);
    return suite.service.failure();
  };
  const total = async () => (await suite.service.get('/health')).body.total_packages as number;

  it('leaves the old snapshot in service', async () => {
    const indices = await suite.service.indices();
    for (const [listener, reason] of [
      [
        answer(`${CSV}x,a,1,https://registry.example/a\n`),
        `line ${OLD.length + 2}: package_no "x" is not a number from 1 to 9007199254740991 in digits without leading zeros`,
      ],
      // Fast enough not to count as stalled.
      [
        trickled(CSV, 10_000, 50),
        'the dataset could not be downloaded within 1 s (DATASET_DOWNLOAD_TIMEOUT_SECONDS)',
      ],
    ] as const) {
      expect(await rebuildFrom(listener)).to.equal(reason);
      expect(await suite.service.indices()).to.deep.equal(indices);
    }
  });

  it('without packages is rejected even with force=true', async () => {
    const before = await total();
    const failure = await rebuildFrom(answer(toCsv(packagesNamed([]))), '&force=true');
    expect(failure).to.equal('the dataset has a header and no packages');
    expect(await total()).to.equal(before);
  });

  it('that is half as large is rejected, but accepted with force=true', async () => {
    const half = answer(toCsv(HALF));
    expect(await rebuildFrom(half)).to.match(
      /^the snapshot has 300 packages, the previous one 600: smaller by more than 10 %/,
    );
    expect(await total()).to.equal(OLD.length);
    expect(await rebuildFrom(half, '&force=true')).to.equal(undefined);
    expect(await total()).to.equal(HALF.length);
  });

  it('that is the bundled sample, because DATASET_URL is not set any more, is rejected even with force=true', async () => {
    const { alias, env } = suite.service;
    // Only a registry with the slug of the sample may be built from it; this one has another alias.
    const config = readConfig({ ...env, REGISTRY_SLUG: DEFAULT_SLUG });
    const context = createRebuildContext(config, createLogger('silent'));
    const attempt = rebuild({ ...context, alias }, { force: true, ...UNLOCKED });
    await rejects(attempt, { message: NO_DATASET }).finally(() => context.close());
    expect(await total()).to.equal(HALF.length);
  });

  reading.itNoticesNothing();
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
