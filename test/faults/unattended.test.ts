import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { applyChanges, type ChangeResult } from '../../fixtures/changes-oracle.js';
import { integer, pick, seededRandom } from '../../fixtures/random.js';
import type { PackageEntry } from '../../src/search/package-document.js';
import { useBackgroundReader } from '../support/background-reader.js';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { bundledPackages, toCsv } from '../support/datasets.js';
import { UNATTENDED_SECONDS } from '../support/long-runs.js';
import { engines, ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { followNext } from '../support/follow-next.js';
import { startService, useService, type Service } from '../support/service.js';

/** How often the dataset changes, in milliseconds. */
const CHANGE_MS = 3000;

const PACKAGES = bundledPackages()
  .slice(0, 3000)
  .map((entry, i) => ({ ...entry, no: i + 1 }));

describe('Three replicas with periodic refreshes of a dataset that changes every few seconds', function () {
  this.timeout((UNATTENDED_SECONDS + 120) * 1000);
  let origin: DatasetServer;
  let csv = toCsv(PACKAGES);
  /** Responses of the origin with the dataset, and with 304. */
  const answered = { dataset: 0, unchanged: 0 };

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    await engines();
    origin = await datasetServer((request, response) => {
      const etag = `"${createHash('sha256').update(csv).digest('hex')}"`;
      const isKnown = request.headers['if-none-match'] === etag;
      answered[isKnown ? 'unchanged' : 'dataset']++;
      response.writeHead(isKnown ? 304 : 200, { ETag: etag }).end(isKnown ? '' : csv);
    });
  });
  const env = () => ({ DATASET_URL: origin.url, REBUILD_INTERVAL_SECONDS: '1' });
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

  /** Adds, removes and updates a few packages of `packages`, in place. */
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

  async function browseAll(replica: Service, snapshot: string): Promise<Map<string, PackageEntry>> {
    const answers = await followNext(replica, `/browse?limit=500&snapshot=${snapshot}`);
    const entries = answers.flatMap(({ body }) => body.results as PackageEntry[]);
    return new Map(entries.map((entry) => [entry.name, entry]));
  }

  it(`serve every change for ${UNATTENDED_SECONDS} seconds, without a failed read`, async () => {
    const random = seededRandom(19);
    const replicas = [suite.service, ...others];
    const end = performance.now() + UNATTENDED_SECONDS * 1000;
    const isOver = () => performance.now() > end;

    const changing = async () => {
      const packages = new Map(PACKAGES.map((entry) => [entry.name, entry]));
      for (let round = 1; !isOver(); round++) {
        change(random, packages, round);
        await pause(CHANGE_MS);
      }
    };

    // Reads all packages once, then only applies changes.
    let held = '';
    let packages = new Map<string, PackageEntry>();
    const followed = { flips: 0, changes: 0, compared: 0 };
    const followChanges = async () => {
      held = suite.service.server.generations.current?.snapshot ?? '';
      packages = await browseAll(suite.service, held);
      while (!isOver()) {
        const replica = pick(random, replicas);
        const answers = await followNext(replica, `/changes?since=${held}&limit=10`);
        const to = answers[0]?.body.to as string;
        const changes = answers.flatMap(({ body }) => body.results as ChangeResult[]);
        expect(new Set(answers.map(({ body }) => body.to as string))).to.deep.equal(new Set([to]));
        if (to === held) {
          await pause(100);
          continue;
        }
        packages = applyChanges([...packages.values()], changes);
        held = to;
        followed.flips++;
        followed.changes += changes.length;
        expect(packages).to.deep.equal(await browseAll(replica, to));
        followed.compared++;
      }
    };

    // Walks through all matches of a search repeatedly; each walk must be from one snapshot.
    let walks = 0;
    const followMatches = async () => {
      while (!isOver()) {
        const answers = await followNext(pick(random, replicas), '/search?q=lib&limit=100');
        const names = answers.flatMap(({ body }) => (body.results as PackageEntry[]).map(({ name }) => name));
        expect(new Set(names)).to.have.length(names.length);
        expect(new Set(answers.map(({ headers }) => headers.get('X-Snapshot')))).to.have.length(1);
        walks++;
        await pause(50);
      }
    };

    await Promise.all([changing(), followChanges(), followMatches()]);
    console.log(
      `    ${followed.flips} flips with ${followed.changes} changes, ${followed.compared} equal comparisons; ${walks} walks; ` +
        `the origin sent its dataset ${answered.dataset} times, and 304 ${answered.unchanged} times`,
    );
    // On a busy machine, a rebuild takes ten seconds.
    expect(followed.flips).to.be.at.least(UNATTENDED_SECONDS / 20);
    expect(walks).to.be.greaterThan(UNATTENDED_SECONDS / 10);
    for (const { server } of replicas) {
      expect(server.rebuilds.counts.failed).to.equal(0);
    }
  });

  reading.itNoticesNothing();

  it('keep only the indices that a rollback and CHANGES_RETENTION need', async () => {
    for (const replica of [suite.service, ...others]) await replica.idle();
    expect(await suite.service.indices()).to.have.length(2);
    const { elasticsearch, alias } = suite.service;
    const changes = Object.keys(await elasticsearch.indices.get({ index: `${alias}-changes-*` }));
    expect(changes.length).to.be.at.most(31);
  });
});
