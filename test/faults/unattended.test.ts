import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { applyChanges, type ChangeResult } from '../fixtures/changes-oracle.js';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { useBackgroundReader } from '../support/background-reader.js';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { UNATTENDED_SECONDS } from '../support/long-runs.js';
import { followNext } from '../support/follow-next.js';
import { startService, useService, type Service } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';

/** Changes of the dataset, at least. */
const MIN_ROUNDS = 3;

/** Until all replicas serve a change, in milliseconds. On a busy machine, a rebuild takes ten seconds. */
const ROUND_MS = 60_000;

const CHANGES_RETENTION = 4;

const PACKAGES = bundledPackages()
  .slice(0, 500)
  .map((entry, i) => ({ ...entry, no: i + 1 }));

describe('Three replicas with periodic refreshes of a dataset that changes all the time', function () {
  this.timeout(UNATTENDED_SECONDS * 1000 + (MIN_ROUNDS + 1) * ROUND_MS);
  let origin: DatasetServer;
  let csv = toCsv(PACKAGES);

  before(async () => {
    origin = await datasetServer((request, response) => {
      const etag = `"${createHash('sha256').update(csv).digest('hex')}"`;
      const isKnown = request.headers['if-none-match'] === etag;
      response.writeHead(isKnown ? 304 : 200, { ETag: etag }).end(isKnown ? '' : csv);
    });
  });
  const env = () => ({
    DATASET_URL: origin.url,
    REBUILD_INTERVAL_SECONDS: '1',
    CHANGES_RETENTION: String(CHANGES_RETENTION),
  });
  const suite = useService(() => PACKAGES, env);
  const totals = Array.from({ length: 1001 }, (_, i) => PACKAGES.length - 500 + i);
  const reading = useBackgroundReader(suite, totals);
  const others: Service[] = [];
  before(async () => {
    for (let i = 0; i < 2; i++) others.push(await startService(env(), suite.service.slug));
  });
  after(async () => {
    for (const replica of others) await replica.stop();
    await origin.close();
  });

  /** Adds, removes and updates a few packages, at least one. */
  function change(random: () => number, packages: Map<string, PackageEntry>, round: number): void {
    for (let i = integer(random, 1, 40); i > 0; i--) {
      const entry = pick(random, [...packages.values()]);
      const kind = integer(random, 0, 2);
      // Removes about as many as it adds, and keeps the names that readers search for.
      if (kind === 0 && !entry.name.includes('lib')) packages.delete(entry.name);
      else if (kind === 1) {
        const no = Math.max(...[...packages.values()].map((one) => one.no)) + 1;
        const name = `${entry.name.slice(0, 40)}-${round}-${i}`;
        packages.set(name, { ...entry, name, no });
      } else packages.set(entry.name, { ...entry, version: `${round}` });
    }
    csv = toCsv([...packages.values()]);
  }

  const snapshotOf = async (replica: Service) =>
    (await replica.get('/stats')).headers.get('X-Snapshot') ?? '';

  async function browseAll(replica: Service, snapshot: string): Promise<Map<string, PackageEntry>> {
    const answers = await followNext(replica, `/browse?limit=500&snapshot=${snapshot}`);
    const entries = answers.flatMap(({ body }) => body.results as PackageEntry[]);
    return new Map(entries.map((entry) => [entry.name, entry]));
  }

  /** Changes the dataset whenever all replicas serve the last change, and nothing else. */
  async function followChanges(random: () => number, replicas: readonly Service[]): Promise<void> {
    const end = performance.now() + UNATTENDED_SECONDS * 1000;
    const dataset = new Map(PACKAGES.map((entry) => [entry.name, entry]));
    // Reads all packages once, then only applies changes.
    let held = await snapshotOf(suite.service);
    let packages = await browseAll(suite.service, held);
    for (let round = 1; round <= MIN_ROUNDS || performance.now() < end; round++) {
      change(random, dataset, round);
      let served: string[] = [];
      await waitFor(
        async () => {
          served = await Promise.all(replicas.map(snapshotOf));
          return !served.includes(held);
        },
        `change ${round} on all replicas`,
        ROUND_MS,
      );
      const [to = '', ...different] = new Set(served);
      expect(different, 'one flip').to.deep.equal([]);
      const answers = await followNext(pick(random, replicas), `/changes?since=${held}&limit=10`);
      expect(new Set(answers.map(({ body }) => body.to as string))).to.deep.equal(new Set([to]));
      const changes = answers.flatMap(({ body }) => body.results as ChangeResult[]);
      packages = applyChanges([...packages.values()], changes);
      expect(packages).to.deep.equal(dataset);
      expect(await browseAll(pick(random, replicas), to)).to.deep.equal(dataset);
      held = to;
    }
  }

  it(`serve every change for ${UNATTENDED_SECONDS} seconds`, async () => {
    const random = seededRandom(19);
    const replicas = [suite.service, ...others];
    await followChanges(random, replicas);
    for (const { server } of replicas) expect(server.rebuilds.counts.failed).to.equal(0);
    for (const replica of replicas) await replica.idle();
    expect(await suite.service.indices()).to.have.length(2);
    const { elasticsearch, alias } = suite.service;
    const changes = Object.keys(await elasticsearch.indices.get({ index: `${alias}-changes-*` }));
    expect(changes.length).to.be.at.most(CHANGES_RETENTION + 1);
  });

  reading.itNoticesNothing();
});
