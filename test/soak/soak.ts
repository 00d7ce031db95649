import { writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { seededRandom } from '../fixtures/random.js';
import { elasticsearchFaults } from './faults/elasticsearch-faults.js';
import type { Fault } from './faults/fault.js';
import { FAULTS } from './faults/faults.js';
import { useFastStartingJvm } from '../support/engines.js';
import { readMaker } from './reads.js';
import { RAMP_SECONDS, Readers } from './readers.js';
import { latencyTable, memoryGrowth, type Injection, type MemorySample, type Point } from './report.js';
import { makeVariants } from './snapshots.js';
import { processesOf, Stack } from './stack.js';

/**
 * `npm run soak` reads three replicas behind HAProxy at a constant rate, verifies every response, and causes
 * faults meanwhile. The last line is `N passed, N failed`; the exit code is 1 if a goal was missed.
 */

const { values } = parseArgs({
  options: {
    /** Reads at least; the soak goes on until all faults have been caused. */
    reads: { type: 'string', default: '1000000' },
    /** Reads a second. */
    rate: { type: 'string', default: '280' },
    /** Determines the order of faults, their targets and moments, and the requests. */
    seed: { type: 'string', default: '21' },
    /** How often each fault is caused at least. */
    rounds: { type: 'string', default: '3' },
    /** Ends with the last read: as many faults as fit, each at most once. */
    short: { type: 'boolean', default: false },
    /** Causes only faults whose names contain this text. */
    only: { type: 'string', default: '' },
  },
});
const READS = Number(values.reads);
const RATE = Number(values.rate);
const SEED = Number(values.seed);

const ROUNDS = Number(values.rounds);
const CHOSEN = FAULTS.filter(({ name }) => name.includes(values.only));
/** The share of searches that may get the documented 503 while a fault of Elasticsearch lasts, in percent. */
const UNAVAILABLE_GOAL = 1;
/** Faults of Elasticsearch: only they may make a search unavailable. */
const OF_ELASTICSEARCH = elasticsearchFaults.map(({ name }) => name);

/** Pause between two faults, in milliseconds, in which the service must be as fast as without any. */
const CALM_MS = 4000;

/**
 * Pause before the first fault, in seconds, after the ramp. At the full rate, the first fault and the compilers of three
 * nodes would need more than two processors, and 80 seconds were not enough on a slow machine. A short soak has neither.
 */
const WARM_UP_SECONDS = values.short ? 0 : 180;

const MEMORY_SAMPLE_MS = 5000;
/** Memory is compared from this minute on, when all caches are full. */
const WARM_MINUTE = 20;
const MEMORY_GOAL_MEGABYTES = 15;

const RESULTS = 'soak-results.json';

const random = seededRandom(SEED);

/** A shuffled copy. */
function shuffled<T>(items: readonly T[]): T[] {
  const rest = [...items];
  return items.map(() => rest.splice(Math.floor(random() * rest.length), 1)[0] as T);
}

/**
 * The order of faults. Those that end the process of a replica come first, so that the memory of the processes
 * that live through all others can be compared.
 */
function* schedule(): Generator<Fault> {
  if (values.short) {
    yield* shuffled(CHOSEN);
    return;
  }
  const repeated = (faults: readonly Fault[]) =>
    shuffled(Array.from({ length: ROUNDS }, () => faults).flat());
  const others = CHOSEN.filter(({ endsReplica }) => endsReplica !== true);
  yield* repeated(CHOSEN.filter((one) => !others.includes(one)));
  yield* repeated(others);
  // Until all reads have been sent.
  while (others.length > 0) yield* shuffled(others);
}

class Soak {
  readonly injections: Injection[] = [];
  readonly memory: MemorySample[] = [];
  /** The fault in progress. */
  #current: string | undefined;
  #began = performance.now();
  readonly readers: Readers;

  constructor(private readonly stack: Stack) {
    const { proxy, snapshots, slug } = stack;
    const next = readMaker(seededRandom(SEED + 1), snapshots, slug);
    this.readers = new Readers(proxy.url, snapshots, next, () => this.#current);
  }

  get #minutes(): number {
    return (performance.now() - this.#began) / 60_000;
  }

  async run(): Promise<void> {
    this.#began = performance.now();
    this.readers.start(RATE);
    const sampling = setInterval(() => void this.#sampleMemory(), MEMORY_SAMPLE_MS);
    await pause((RAMP_SECONDS + WARM_UP_SECONDS) * 1000);
    const needed = values.short ? 0 : ROUNDS * CHOSEN.length;
    for (const fault of schedule()) {
      if (this.readers.sent >= READS && this.injections.length >= needed) break;
      if (!(await this.#inject(fault))) break;
      await pause(CALM_MS);
    }
    const isBroken = this.injections.some(({ hasRecovered }) => !hasRecovered);
    while (this.readers.sent < READS && !isBroken) await pause(CALM_MS);
    await this.readers.stop();
    clearInterval(sampling);
  }

  /** @returns whether everything works again. */
  async #inject({ name: fault, inject }: Fault): Promise<boolean> {
    const minutes = this.#minutes;
    const began = performance.now();
    this.#current = fault;
    const reasonOf = (work: Promise<void>) =>
      work.then(
        () => undefined,
        (error: unknown) => (error as Error).message,
      );
    const unexpected = await reasonOf(inject(this.stack));
    const unrecovered = await reasonOf(this.stack.recovered());
    this.#current = undefined;
    const failure = [unexpected, unrecovered].filter(Boolean).join('; ');
    const hasRecovered = unrecovered === undefined;
    const seconds = (performance.now() - began) / 1000;
    this.injections.push({ fault, minutes, seconds, failure, hasRecovered });
    const { sent, failed, wrong, searches } = this.readers;
    const unavailable = searches.get(fault)?.unavailable ?? 0;
    const times = [`${minutes.toFixed(1).padStart(5)} min`, `${seconds.toFixed(1).padStart(5)} s`];
    const counts = `${sent} reads, ${failed} failed, ${wrong} wrong; ${unavailable} documented 503`;
    console.log(`${times.join('  ')}  ${fault.padEnd(60)}  ${counts}`);
    if (failure !== '') console.log(`  UNEXPECTED: ${failure}`);
    return hasRecovered;
  }

  async #sampleMemory(): Promise<void> {
    for (const replica of this.stack.replicas) {
      try {
        const { name, pid } = replica;
        this.memory.push({ replica: name, pid, minutes: this.#minutes, megabytes: await replica.memory() });
      } catch {
        // It is being restarted.
      }
    }
  }

  /** The growth of each replica's memory since `WARM_MINUTE`; empty for a shorter soak. */
  growth(): ReturnType<typeof memoryGrowth> {
    const end = this.memory.at(-1)?.minutes ?? 0;
    return end < WARM_MINUTE + 2 ? [] : memoryGrowth(this.memory, WARM_MINUTE, end - 1);
  }
}

function summary(soak: Soak, leftovers: readonly string[]): Point[] {
  const { readers, injections } = soak;
  const searches = [...readers.searches];
  const shares = searches.map(([, { sent, unavailable }]) => (100 * unavailable) / sent);
  const others = searches.filter(([fault]) => !OF_ELASTICSEARCH.includes(fault));
  const unexplained = others.reduce((sum, [, { unavailable }]) => sum + unavailable, 0);
  const unexpected = injections.filter(({ failure }) => failure !== '').length;
  const points: Point[] = [
    atLeast('reads', readers.sent, READS),
    atMost('failed reads', readers.failed + unexplained, 0),
    atMost('searches of one fault that got the documented 503, %', Math.max(0, ...shares), UNAVAILABLE_GOAL),
    atMost('wrong responses', readers.wrong, 0),
    atMost('faults after which the service did not behave as expected', unexpected, 0),
    atMost('leftovers', leftovers.length, 0),
  ];
  for (const { replica, megabytes } of soak.growth()) {
    const point = `memory of ${replica}, last minute − minute ${WARM_MINUTE}, MB`;
    points.push(atMost(point, megabytes, MEMORY_GOAL_MEGABYTES));
  }
  return points;
}

function atMost(point: string, value: number, goal: number): Point {
  return { point, goal: `≤ ${goal}`, measured: format(value), isMet: value <= goal };
}

function atLeast(point: string, value: number, goal: number): Point {
  return { point, goal: `≥ ${goal.toLocaleString('en')}`, measured: format(value), isMet: value >= goal };
}

function format(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 1 });
}

// Compilers would take the processors for most of it.
if (values.short) useFastStartingJvm();
const variants = makeVariants(seededRandom(SEED + 2));
const stack = await Stack.start(variants, random);
console.log(`Logs: ${stack.folder}`);
const soak = new Soak(stack);
let points: Point[] = [];
try {
  await soak.run();
  console.table(latencyTable(soak.readers));
  // The next rebuild removes what killed ones have left: the temporary files of a replica, only its own.
  for (const replica of stack.replicas) await stack.rebuild(replica);
  const leftovers = await stack.leftovers();
  for (const line of leftovers) console.log(`left behind: ${line}`);
  points = summary(soak, leftovers);
} finally {
  const isGood = points.length > 0 && points.every(({ isMet }) => isMet);
  await stack.stop({ keep: !isGood });
}
const running = await processesOf(stack.slug);
points.push(atMost('processes left', running.length, 0));
console.table(points);
await writeFile(
  RESULTS,
  `${JSON.stringify({ taken_at: new Date(), seed: SEED, rate: RATE, points, injections: soak.injections, latencies: latencyTable(soak.readers), memory: soak.memory, incidents: soak.readers.incidents }, null, 2)}\n`,
);
console.log(`Written to ${RESULTS}.`);
const missed = points.filter(({ isMet }) => !isMet).length;
console.log(`${points.length - missed} passed, ${missed} failed`);
process.exitCode = missed > 0 ? 1 : 0;
