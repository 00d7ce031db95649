import { expect } from 'chai';
import { seededRandom } from '../fixtures/random.js';
import { Readers } from '../soak/readers.js';
import { ENGINES_TIMEOUT_MS } from '../support/engines.js';
import { toCsv } from '../support/datasets.js';
import { request } from '../support/service.js';
import { waitFor } from '../support/wait-for.js';
import { BYPASS_SECRET, Deployment, type Version } from './deployment.js';
import { UpgradeReads } from './reads.js';

/** Reads in all, and a second after a ramp. */
const READS = 50_000;
const RATE = 150;

/** One step of the upgrade. */
type Step = [name: string, take: (deployment: Deployment) => Promise<void>];

const STEPS: Step[] = [
  ['0.2.0 alone', () => Promise.resolve()],
  ['one replica upgraded: both count the points of a client together', oneReplicaUpgraded],
  ['both versions: a rebuild by 0.2.0, whose snapshot has no weights', rebuildWithoutWeights],
  ['both versions: a rebuild by this one, whose `_meta` has all members of 0.2.0', rebuildWithWeights],
  ['both versions: a rollback by 0.2.0', (deployment) => deployment.rollBack('old')],
  ['both versions: a rollback by this one', (deployment) => deployment.rollBack('new')],
  ['both versions: a rebuild by 0.2.0 on a snapshot of this one', (deployment) => deployment.rebuild('old')],
  ['both versions: refreshes at an interval build once', (deployment) => deployment.refresh()],
  ['both replicas upgraded', (deployment) => deployment.roll(1, 'new')],
  ['this version alone: a rebuild', (deployment) => deployment.rebuild('new')],
  ['one replica back to 0.2.0', (deployment) => deployment.roll(0, 'old')],
  ['both versions: another rebuild by this one', (deployment) => deployment.rebuild('new')],
  ['both replicas back to 0.2.0', (deployment) => deployment.roll(1, 'old')],
  ['0.2.0 alone: a rollback to a snapshot of this version', (deployment) => deployment.rollBack('old')],
  ['0.2.0 alone: a rebuild on it', (deployment) => deployment.rebuild('old')],
];

async function oneReplicaUpgraded(deployment: Deployment): Promise<void> {
  await deployment.roll(0, 'new');
  const left = async (version: Version) => {
    const headers = { 'X-Forwarded-For': '192.0.2.7' };
    const response = await request(`${deployment.url(version)}/stats`, { headers });
    return Number(/\br=(\d+)/.exec(response.headers.get('RateLimit') ?? '')?.[1]);
  };
  const first = await left('old');
  expect([await left('new'), await left('old')]).to.deep.equal([first - 1, first - 2]);
}

async function rebuildWithoutWeights(deployment: Deployment): Promise<void> {
  await deployment.rebuild('old');
  const url = deployment.url('new');
  expect((await request(`${url}/stats`)).body).not.to.have.property('has_weights');
  const search = `${url}/search?q=in&limit=60`;
  expect((await request(`${search}&sort=weight`)).body).to.deep.equal((await request(search)).body);
  const { text } = await request(`${url}/export`);
  expect(text).to.equal(toCsv(deployment.packages()));
}

async function rebuildWithWeights(deployment: Deployment): Promise<void> {
  const old = membersOf(await deployment.meta());
  await deployment.rebuild('new');
  expect(membersOf(await deployment.meta())).to.include.members(old);
  const url = deployment.url('new');
  expect((await request(`${url}/stats`)).body).to.have.property('has_weights', true);
  expect((await request(`${url}/export`)).text).to.equal(toCsv(deployment.packages()));
}

/** The paths of all members of a value, each with the type of its value. */
function membersOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.slice(0, 1).flatMap((item) => membersOf(item, `${path}[]`));
  if (typeof value !== 'object' || value === null) return [`${path}: ${typeof value}`];
  return Object.entries(value).flatMap(([name, member]) => membersOf(member, `${path}.${name}`));
}

describe('A rolling upgrade from 0.2.0, and the way back', function () {
  this.timeout(300_000);
  // Each step continues where the one before ended.
  this.bail(true);
  let deployment: Deployment;
  let reads: UpgradeReads;
  let readers: Readers;
  let step = '';

  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    deployment = await Deployment.start();
    const { slug, proxy, snapshots } = deployment;
    reads = new UpgradeReads(seededRandom(1), snapshots, { slug, bypassSecret: BYPASS_SECRET });
    readers = new Readers(
      proxy.url,
      snapshots,
      () => reads.next(),
      () => step,
    );
    readers.start(RATE);
  });
  after(async () => {
    await readers.stop();
    await deployment.stop();
  });

  for (const [name, take] of STEPS) {
    it(name, async () => {
      step = name;
      const before = readers.sent;
      await take(deployment);
      await deployment.checkChanges();
      // Every state gets its share of reads.
      await waitFor(() => readers.sent - before >= READS / STEPS.length, 'the reads', 300_000);
      expect(readers.incidents).to.deep.equal([]);
    });
  }

  it(`${READS} reads by clients: none failed, and none was wrong`, async () => {
    await readers.stop();
    const { sent, failed, wrong, incidents } = readers;
    console.log(
      `${sent} reads, ${failed} failed, ${wrong} wrong; ${reads.completedWalks} walks by next to the end, ` +
        `${reads.goneWalks} ended by the documented 410`,
    );
    expect(incidents).to.deep.equal([]);
    expect(sent).to.be.at.least(READS);
    expect(reads.completedWalks).to.be.at.least(100);
  });
});
