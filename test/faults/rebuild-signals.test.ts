import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { builtAt } from '../../src/snapshot/index-names.js';
import { UNCACHED, useBackgroundReader } from '../support/background-reader.js';
import { datasetServer, type DatasetServer } from '../support/dataset-server.js';
import { toCsv } from '../support/datasets.js';
import {
  EngineProxy,
  isBulk,
  isCreation,
  isFlip,
  isMerge,
  isRelease,
  type Matches,
} from '../support/engine-proxy.js';
import { engines } from '../support/engines.js';
import { expectProblem } from '../support/expect-problem.js';
import { HANG_SECONDS, LOCK_WAIT_SECONDS } from '../support/long-runs.js';
import { isRunning, rebuildsOf } from '../support/rebuild-processes.js';
import { endLock, spawnReplica } from '../support/replicas.js';
import { REBUILD, request, SHARED_PACKAGES, useService } from '../support/service.js';
import { keptIndices } from '../support/served-index.js';
import { SpawnedCli } from '../support/spawn-cli.js';
import { waitFor } from '../support/wait-for.js';

const OLD = SHARED_PACKAGES.slice(0, 300);
const NEW = SHARED_PACKAGES.slice(0, 600);

const isVerification: Matches = (_method, path) => path.includes('_msearch');
const isComparison: Matches = (method, path) => method === 'PUT' && path.includes('-changes-2');
/** Also of the index of changes, which is copied at the end of the comparison. */
const isCopying: Matches = (method, path) => method === 'PUT' && path.includes('_settings');
const isPruning: Matches = (_method, path, body) =>
  path.startsWith('/_aliases') && body.includes('remove_index');

/** Where a rebuild is, by a request that it is about to send, or has sent. Without one, it waits for its dataset. */
type Point = [step: string, when?: 'before' | 'after', matches?: Matches];

const DOWNLOADING: Point = ['downloading'];
const CREATED: Point = ['creating, after the request', 'after', isCreation];
const LOADING: Point = ['loading', 'before', isBulk];
const FLIPPING: Point = ['flipping', 'before', isFlip];
const FLIPPED: Point = ['flipping, after the request', 'after', isFlip];
const PRUNING: Point = ['pruning', 'before', isPruning];
const RELEASING: Point = ['releasing the lock', 'before', isRelease];
const ALL: readonly Point[] = [
  DOWNLOADING,
  ['creating, after checking', 'before', isCreation],
  CREATED,
  LOADING,
  ['merging', 'before', isMerge],
  ['merging, after the request', 'after', isMerge],
  ['verifying', 'before', isVerification],
  ['comparing', 'after', isComparison],
  ['replicating', 'before', isCopying],
  FLIPPING,
  FLIPPED,
  PRUNING,
];

const hasFlipped = (point: Point) => [FLIPPED, PRUNING].includes(point);

/** A rebuild that has begun, in a process of its own. */
interface Begun {
  pid: number;
  server?: SpawnedCli;
  /** Waits for its end. @returns what its server logs, or how its command exits. */
  end(): Promise<string>;
}

const HOUR_MS = 3_600_000;

/** The option of Node that sets a clock. */
function clockAhead(hours: number): string {
  const code = `const { now } = Date;
    Date.now = () => now() + ${hours * HOUR_MS};
    globalThis.Date = new Proxy(Date, { construct: (date, at) => new date(...(at.length ? at : [date.now()])) });`;
  return `--import=data:text/javascript,${encodeURIComponent(code)}`;
}

describe('A rebuild', function () {
  this.timeout(240_000 + ALL.length * LOCK_WAIT_SECONDS * 1000);
  const suite = useService(
    () => OLD,
    () => UNCACHED,
  );
  const reading = useBackgroundReader(suite, [OLD.length, NEW.length]);
  let origin: DatasetServer;
  let proxy: EngineProxy;
  /** Undefined if it was killed. */
  let replica: SpawnedCli | undefined;
  /** What the dataset server sends to the rebuilds that get signals; nothing while undefined. */
  let csv: string | undefined;
  let waiting: ServerResponse[] = [];
  let downloads = 0;

  before(async () => {
    origin = await datasetServer((_request, response) => {
      downloads++;
      if (csv === undefined) waiting.push(response);
      else response.end(csv);
    });
    proxy = await EngineProxy.start(engines().elasticsearch.url);
  });
  after(async () => {
    await replica?.stop();
    await Promise.all([proxy.close(), origin.close()]);
  });

  /** Answers the downloads that wait, and all that follow. */
  function sendLists(): void {
    csv = toCsv(NEW);
    for (const response of waiting) response.end(csv);
    waiting = [];
  }

  /** @param hours how far the clock of the process is ahead of the clock of Elasticsearch. */
  const env = (hours: number) => ({
    ELASTICSEARCH_URL: proxy.url,
    DATASET_URL: origin.url,
    NODE_OPTIONS: clockAhead(hours),
  });

  async function byServer(): Promise<Begun> {
    const server = (replica ??= spawnReplica(suite, env(1)));
    const url = `${await server.url()}${REBUILD}&force=true`;
    const from = server.stdout.length;
    // A process has ended a moment before its server knows.
    await waitFor(async () => (await request(url)).status === 202, 'the rebuild to begin', 20_000);
    const [pid = NaN] = rebuildsOf(server.pid);
    const end = async () => {
      const outcome = () => /"msg":"(rebuilt|the rebuild failed)/.exec(server.stdout.slice(from))?.[1];
      await waitFor(() => outcome() !== undefined, 'the outcome in the log', 40_000);
      await waitFor(() => !isRunning(pid), 'the process to end', 20_000);
      return outcome() ?? '';
    };
    return { pid, server, end };
  }

  function byCommand(name = 'cli/rebuild', args = ['--force']): Promise<Begun> {
    const command = new SpawnedCli(name, { ...suite.service.env, ...env(-1) }, args);
    return Promise.resolve({ pid: command.pid ?? NaN, end: async () => String(await command.exit()) });
  }

  /** Begins a rebuild, waits until it is at a point, and starts another. @returns it, and what lets its request go. */
  async function rebuildUntil([step, when, matches]: Point, begin: () => Promise<Begun>) {
    csv = matches && toCsv(NEW);
    const before = downloads;
    const hold = when && matches && proxy.hold(when, matches);
    const begun = await begin();
    await hold?.arrived;
    if (hold === undefined) await waitFor(() => downloads > before, `${step} to begin`);
    expectProblem(await suite.service.get(REBUILD), 503, 'rebuilding');
    return { begun, release: () => hold?.release() };
  }

  /** Only the current and the previous snapshot are left. */
  async function expectNothingLeft(step: string): Promise<void> {
    const kept = (await keptIndices(suite.service)).filter((index) => index !== undefined);
    expect(await suite.service.indices(), step).to.have.members(kept);
  }

  /** Lets another replica rebuild. @returns the failure that it reports first, and what is served then. */
  async function rebuildElsewhere(step: string) {
    const before = await keptIndices(suite.service);
    const { status, body } = await suite.service.rebuild('&force=true');
    expect(status, `${step}: ${JSON.stringify(body)}`).to.equal(202);
    const kept = await keptIndices(suite.service);
    expect(kept[1], `${step}: the previous snapshot`).to.equal(before[0]);
    await expectNothingLeft(step);
    return { failure: body.last_failure?.reason as string | undefined, kept };
  }

  /** Kills processes of a rebuild at a point. @returns the failure that the next one reports. */
  async function killAt(
    point: Point,
    begin: () => Promise<Begun>,
    victims: readonly ('process' | 'server')[],
  ) {
    const [step] = point;
    const [before] = await keptIndices(suite.service);
    const { begun, release } = await rebuildUntil(point, begin);
    const isKilled = victims.includes('process');
    if (victims.includes('server')) {
      begun.server?.signal('SIGKILL');
      replica = undefined;
    }
    if (isKilled) process.kill(begun.pid, 'SIGKILL');
    if (isKilled) await waitFor(() => !isRunning(begun.pid), `the process to end, ${step}`);
    sendLists();
    release();
    if (begun.server === undefined || !victims.includes('server')) await begun.end();
    await waitFor(() => !isRunning(begun.pid), `the process to end, ${step}`, 20_000);
    const [now] = await keptIndices(suite.service);
    const isServed = hasFlipped(point) || !isKilled;
    expect(now === before, `${step}: the same is served`).to.equal(!isServed);
    // A server that has survived releases the lock.
    if (isKilled && (begun.server === undefined || victims.includes('server'))) await endLock(suite.service);
    const { failure } = await rebuildElsewhere(step);
    return failure;
  }

  /** Suspends a rebuild at a point while another replica rebuilds after the end of the lock. @returns its outcome. */
  async function suspendAt(point: Point, begin: () => Promise<Begun>): Promise<string> {
    const [step] = point;
    const { begun, release } = await rebuildUntil(point, begin);
    const signal = (name: NodeJS.Signals) => {
      process.kill(begun.pid, name);
      begun.server?.signal(name);
    };
    signal('SIGSTOP');
    const resume = () => {
      signal('SIGCONT');
      release();
      sendLists();
    };
    // Also after a failure: the tests that follow use the same proxy.
    const elsewhere = endLock(suite.service).then(() => rebuildElsewhere(step));
    const { failure, kept } = await elsewhere.finally(resume);
    expect(failure, step).to.match(/^the rebuild process ended unexpectedly while \w+ing$/);
    const outcome = await begun.end();
    expect(await keptIndices(suite.service), step).to.deep.equal(kept);
    await expectNothingLeft(step);
    return outcome;
  }

  const VICTIMS = [
    ['its command', byCommand, ['process']],
    ['its process', byServer, ['process']],
    ['its process with the server', byServer, ['process', 'server']],
  ] as const;
  for (const [what, begin, victims] of VICTIMS)
    it(`leaves nothing that the next one does not remove if ${what} is killed`, async () => {
      for (const point of ALL) {
        const failure = await killAt(point, begin, victims);
        expect(failure, point[0]).to.match(
          /^the rebuild process ended (unexpectedly|by SIGKILL) while \w+ing$/,
        );
        // The phase may have been reported or not when the process was killed.
      }
    });

  it('goes on if its server is killed', async () => {
    for (const point of ALL) expect(await killAt(point, byServer, ['server']), point[0]).to.equal(undefined);
  });

  for (const [name, begin] of [
    ['server', byServer],
    ['command', byCommand],
  ] as const)
    it(`changes nothing that another one serves if its ${name} was suspended`, async () => {
      for (const point of ALL) {
        const isSuccess = /^(0|rebuilt)/.test(await suspendAt(point, begin));
        expect(isSuccess, point[0]).to.equal(hasFlipped(point));
      }
    });

  it('is the only one although the clocks of hosts differ by an hour', async () => {
    for (const [begin, hours] of [
      [byServer, 1],
      [byCommand, -1],
    ] as const) {
      const [before] = await keptIndices(suite.service);
      const { begun, release } = await rebuildUntil(LOADING, begin);
      release();
      expect(await begun.end()).to.match(/^(0|rebuilt)/);
      const [current = '', previous] = await keptIndices(suite.service);
      expect(previous).to.equal(before);
      expect(Date.parse(builtAt(current) ?? '')).to.be.closeTo(Date.now() + hours * HOUR_MS, 60_000);
      await expectNothingLeft('loading');
    }
  });

  it(`succeeds although Elasticsearch hangs for ${HANG_SECONDS} seconds`, async () => {
    for (const point of [LOADING, FLIPPED, RELEASING]) {
      const { begun, release } = await rebuildUntil(point, byCommand);
      const hanging = proxy.hang();
      await pause(HANG_SECONDS * 1000);
      release();
      hanging.release();
      expect(await begun.end(), point[0]).to.equal('0');
      const { failure } = await rebuildElsewhere(point[0]);
      expect(failure, point[0]).to.equal(undefined);
    }
  });

  it('is not undone by a rollback that was suspended', async () => {
    await suite.publish(OLD);
    const rollBack = () => byCommand('cli/rollback', []);
    expect(await suspendAt(['rolling back', 'before', isFlip], rollBack)).to.equal('1');
  });

  it('ends in ten seconds if Elasticsearch does not respond to the cleanup after a stop', async () => {
    csv = toCsv(NEW);
    const load = proxy.hold('before', isBulk);
    const command = new SpawnedCli('cli/rebuild', { ...suite.service.env, ...env(-1) }, ['--force']);
    await load.arrived;
    const hanging = proxy.hang();
    const began = performance.now();
    expect(await command.stop(), command.stderr).to.equal(1);
    expect(performance.now() - began).to.be.within(8_000, 10_000);
    expect(command.stdout + command.stderr).to.contain('the cleanup after the stop takes too long');
    load.release();
    hanging.release();
    await endLock(suite.service);
    await rebuildElsewhere('loading');
  });

  reading.itNoticesNothing();
});
