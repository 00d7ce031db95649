import { expect } from 'chai';
import { applyChanges, changesBetween, type ChangeResult } from '../fixtures/changes-oracle.js';
import { integer, pick, seededRandom } from '../fixtures/random.js';
import { rollBack } from '../../src/publish/rollback.js';
import type { PackageEntry } from '../../src/snapshot/package-document.js';
import { packagesNamed, toCsv } from '../support/datasets.js';
import { isBulk, isCreation, isFlip, type Matches } from '../support/engine-proxy.js';
import { SEQUENCES } from '../support/long-runs.js';
import { followNext } from '../support/follow-next.js';
import { useProxiedService } from '../support/proxied-service.js';
import { REBUILD, useService } from '../support/service.js';
import { rebuildsOf } from '../support/rebuild-processes.js';
import { STEP } from '../support/step.js';

const RETENTION = 4;
const STEPS = 5;

const NAMES = ['lib', 'LIB', 'Lib', 'LİB', 'li-b', 'lib\u{10FFFF}', '\uE000lib', '🚀', '🚀-LIB', '🚀-lib', '"', 'ſ', 'K', 'k', `x${'y'.repeat(511)}`, ...Array.from({ length: 25 }, (_, i) => `name-${i}`)]; // prettier-ignore

/** The expected state of a snapshot. */
interface Known {
  packages: PackageEntry[];
  /** Earlier snapshots of its chain, latest first. */
  ancestors: string[];
}

type Random = () => number;

describe('Comparing snapshots with the longest possible entries after short ones', function () {
  this.timeout(120_000);
  // Characters that JSON escapes: two bytes for one of a name or a URL, six for one of a version.
  const longest = (i: number) => {
    const no = `${i}`.padStart(5, '0');
    const url = `https://r.example/?${no}`;
    return {
      no: 10_000 + i,
      name: `z${no}${'"'.repeat(506)}`,
      version: '\u0001'.repeat(256),
      url: url + '\\'.repeat(2048 - url.length),
    };
  };
  const short = packagesNamed(Array.from({ length: 8000 }, (_, i) => `a-${i}`));
  const packages = [...short, ...Array.from({ length: 6000 }, (_, i) => longest(i))];
  const suite = useService(() => packages);

  it('does not run out of memory', async () => {
    const { service, dataset } = suite;
    const since = (await service.get('/stats')).headers.get('X-Snapshot');
    const changed = packages.map((entry, i) => (i % 1000 === 999 ? { ...entry, version: '2' } : entry));
    await dataset.write(toCsv(changed));
    // In the process of a rebuild, whose memory is limited.
    expect((await service.rebuild()).status).to.equal(202);
    const { body } = await service.get(`/changes?since=${since}&limit=1000`);
    expect(body.results).to.deep.equal(changesBetween([packages, changed]));
    expect(body.count).to.equal(14);
  });
});

/** Where a rebuild is killed, and whether it has flipped by then. */
const KILLS: [when: 'before' | 'after', matches: Matches, flipped: boolean][] = [
  ['before', isCreation, false],
  ['after', isCreation, false],
  ['after', isBulk, false],
  ['before', (_method, path) => path.includes('_count'), false],
  ['before', isFlip, false],
  ['after', isFlip, true],
];

describe('/changes after random histories of rebuilds, rollbacks and kills', function () {
  this.timeout(120_000);
  // Without Redis, the lock of a killed process ends with it.
  const suite = useProxiedService(() => packagesNamed(['first', 'second']), {
    REDIS_URL: '',
    CHANGES_RETENTION: String(RETENTION),
    CACHE_MAX_BYTES: '0',
  });

  let known: Map<string, Known>;
  let current: string;
  let previous: string | undefined;

  const packagesOf = (id: string) => known.get(id)?.packages ?? [];

  /** Earlier snapshots are not part of a history. */
  async function begin(packages: PackageEntry[]): Promise<void> {
    current = await suite.publish(packages);
    known = new Map([[current, { packages, ancestors: [] }]]);
    previous = undefined;
  }

  /** Changes packages at random: often a few, sometimes so many that a new chain starts. */
  function evolve(random: Random, packages: readonly PackageEntry[]): PackageEntry[] {
    const share = pick(random, [0, 0.05, 0.1, 0.2, 0.8]);
    const byName = new Map(packages.map((entry) => [entry.name, entry]));
    let no = Math.max(...packages.map((entry) => entry.no));
    for (const name of NAMES) {
      if (random() > share) continue;
      const entry = byName.get(name) ?? packagesNamed([name])[0] ?? expect.fail();
      const kind = integer(random, 0, 4);
      if (kind === 0) byName.delete(name);
      else if (kind === 1) byName.set(name, { ...entry, no: ++no });
      else if (kind === 2) byName.set(name, { ...entry, no: ++no, url: `https://r.example/${no}` });
      else if (!byName.has(name)) byName.set(name, { ...entry, no: ++no });
      // Few versions, so that some changes go from A to B and back to A.
      else byName.set(name, { ...entry, version: pick(random, ['1', '2', '3']) });
    }
    return byName.size === 0 ? packagesNamed(['only']) : [...byName.values()];
  }

  async function refresh(): Promise<string> {
    const { snapshots } = suite.service.server;
    await snapshots.refresh();
    return snapshots.current?.id ?? '';
  }

  /** Records that a snapshot of these packages is served. */
  function note(served: string, packages: PackageEntry[]): void {
    const before = known.get(current);
    const changed = changesBetween([packagesOf(current), packages]).length;
    const isComparable = changed <= Math.max(packagesOf(current).length, packages.length) / 2;
    const ancestors = isComparable ? [current, ...(before?.ancestors ?? [])].slice(0, RETENTION) : [];
    known.set(served, { packages, ancestors });
    previous = current;
    current = served;
  }

  async function rebuildAndKill(packages: PackageEntry[], kill: (typeof KILLS)[number]): Promise<void> {
    const [when, matches, flipped] = kill;
    const { service, dataset, proxy } = suite;
    await dataset.write(toCsv(packages));
    const { rebuilt, failed } = service.server.rebuilds.counts;
    const hold = proxy.hold(when, matches);
    const before = rebuildsOf();
    expect((await service.get(`${REBUILD}&force=true`)).status).to.equal(202);
    await hold.arrived;
    for (const worker of rebuildsOf()) if (!before.includes(worker)) process.kill(worker, 'SIGKILL');
    await service.idle();
    hold.release();
    const served = await refresh();
    expect(served !== current, 'whether it has flipped').to.equal(flipped);
    expect(service.server.rebuilds.counts).to.include({ rebuilt, failed: failed + 1 });
    if (flipped) note(served, packages);
  }

  async function goBack(): Promise<void> {
    const { elasticsearch, alias } = suite.service;
    if (previous === undefined) return;
    await rollBack(elasticsearch, alias, STEP);
    [current, previous] = [previous, current];
    expect(await refresh()).to.equal(current);
  }

  /** Compares `/changes` since every snapshot of this history with the expected changes. */
  async function check(random: Random): Promise<void> {
    const { ancestors = [] } = known.get(current) ?? {};
    const chain = [current, ...ancestors];
    for (const id of known.keys()) {
      const at = chain.indexOf(id);
      const path = `/changes?since=${id}&limit=${integer(random, 1, 9)}`;
      if (at === -1) {
        expect((await suite.service.get(path)).status, path).to.equal(410);
        continue;
      }
      const answers = await followNext(suite.service, path);
      const changes = answers.flatMap(({ body }) => body.results as ChangeResult[]);
      const way = chain
        .slice(0, at + 1)
        .reverse()
        .map(packagesOf);
      expect(changes).to.deep.equal(changesBetween(way));
      const replayed = applyChanges(packagesOf(id), changes);
      expect(replayed).to.deep.equal(new Map(packagesOf(current).map((entry) => [entry.name, entry])));
    }
  }

  for (let seed = 1; seed <= SEQUENCES; seed++) {
    it(`returns the changes since the snapshots of the chain alone (seed ${seed})`, async () => {
      const random = seededRandom(seed);
      await begin(packagesNamed([`reset-${seed}`, `and-${seed}`]));
      const beginning = packagesNamed(NAMES.filter(() => random() < 0.7));
      note(await suite.publish(beginning), beginning);
      for (let step = 0; step < STEPS; step++) {
        const action = random();
        if (action < 0.2) await goBack();
        else {
          const packages = evolve(random, packagesOf(current));
          if (action < 0.5) await rebuildAndKill(packages, pick(random, KILLS));
          else note(await suite.publish(packages), packages);
        }
        await check(random);
      }
    });
  }
});
