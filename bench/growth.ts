import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { sampleNames } from '../test/fixtures/generated-dataset.js';
import { KINDS, makeQueries, type Kind, type Query } from '../test/fixtures/queries.js';
import { pick, seededRandom } from '../test/fixtures/random.js';
import { mean, median, percentile } from '../test/fixtures/statistics.js';
import { PHASES } from '../src/rebuild/progress.js';
import { browseRounds } from './browse-pages.js';
import { changeCount, measureRebuild, readChanges, startOnChanged } from './changed-snapshot.js';
import { barChart } from './chart.js';
import { bytesOf, withEngines } from './engines.js';
import { exitByGoals, report } from './goals.js';
import { load, searchPath, similarPath, uncachedEnv } from './load.js';
import {
  BaselineClient,
  interleaveRounds,
  medianRatio,
  type Round,
  type Statistic,
  type Contestants,
} from './measure.js';
import { ServerProcess } from './processes.js';
import { typo } from './typos.js';

/**
 * `npm run bench -- --names 10000000` measures loads, rebuilds and requests with `SMALL` names and with that many, on one
 * Elasticsearch. Requests to the two sizes take turns, and the median over rounds counts. Prints the figures, writes them
 * to `RESULTS`, and draws `CHART`. The exit code is 1 if a goal was missed.
 */

const { values } = parseArgs({ options: { names: { type: 'string', default: '1000000' } } });
const NAMES = Number(values.names);

/** The smaller number of names. The larger dataset begins with the same names. */
const SMALL = 250_000;

const ROUNDS = 9;
const QUERIES_PER_KIND = 100;
const BROWSE_REQUESTS = 100;
const TYPOS = 500;
/** Rounds in which all changes of the larger dataset are read. */
const CHANGES_ROUNDS = 5;

/** Interval at which the disk is measured, and the age that Elasticsearch's value may have, in milliseconds. */
const SAMPLE_MS = 1000;
const STATS_AGE_MS = 12_000;

const CHART = 'docs/evidence/charts/growth.svg';
const RESULTS = 'bench-growth.json';

const RATIO = 'large ÷ small';
const GOAL = 'goal';

const p50 = median;
const p95: Statistic = (times) => percentile(times, 0.95);
const p99: Statistic = (times) => percentile(times, 0.99);

/** The figures in the chart. */
const CHARTED = [
  'search, all queries: mean, ms',
  ...KINDS.map((kind) => `search, ${kind}: mean, ms`),
  'browse, first page: mean, ms',
  'browse, last page: mean, ms',
  '/similar: p50, ms',
];

/** Prints figures as they come, and keeps them by figure and column: a number of names, `RATIO` or `GOAL`. */
class Figures {
  readonly rows: Record<string, Record<string, number>> = {};

  note(figure: string, column: string, value: number): void {
    this.#set(figure, column, value);
    console.log(`${figure.padEnd(58)} ${column.padStart(16)} ${rounded(value).toString().padStart(8)}`);
  }

  /** Reports a figure that must not exceed `goal`. */
  judge(figure: string, column: string, value: number, goal: number): void {
    this.#set(figure, column, value);
    this.#set(figure, GOAL, goal);
    report(`${figure}, ${column}`, value, goal);
  }

  #set(figure: string, column: string, value: number): void {
    (this.rows[figure] ??= {})[column] = value;
  }
}

/** A fresh process that serves one of the datasets. */
interface Served {
  size: number;
  service: ServerProcess;
  client: BaselineClient;
}

/** The larger dataset is the first one, because ratios divide by the smaller one. */
type BothServed = readonly [large: Served, small: Served];

async function measureLoad(
  figures: Figures,
  size: number,
  env: Record<string, string>,
  folder: string,
): Promise<void> {
  const { service, seconds, engineTime } = await load(size, { env, folder, slug: slugOf(size) });
  await service.stop();
  const note = (figure: string, value: number) => figures.note(figure, columnOf(size), value);
  note('load, s', seconds);
  note('load, rows a second', size / seconds);
  note('load, peak memory of the server, MB', service.peakMegabytes);
  note('load, peak memory of the rebuild process, MB', service.peakMegabytesOfChildren);
  note('load, peak memory of both, MB', service.peakMegabytesWithChildren);
  note('load, processor time of Elasticsearch per row, µs', (engineTime * 1000) / size);
}

/** Measures a rebuild in a new process, from a snapshot in which one name in a hundred changed. */
async function measureChangedRebuild(
  figures: Figures,
  size: number,
  env: Record<string, string>,
  folder: string,
): Promise<void> {
  const path = join(folder, 'changed.csv');
  const service = await startOnChanged(size, path, { ...env, REGISTRY_SLUG: slugOf(size) });
  const note = (figure: string, value: number) => figures.note(figure, columnOf(size), value);
  try {
    const elasticsearch = env['ELASTICSEARCH_URL'] as string;
    const indices = `${slugOf(size)}-*`;
    // Until then, the size includes the segments before the merge.
    await pause(STATS_AGE_MS);
    const copy = await bytesOf(elasticsearch, indices);
    note('index on disk, MB', copy / 1e6);
    note('index on disk, bytes per name', copy / size);
    const { result, peak } = await withPeak(measureRebuild(service), () => bytesOf(elasticsearch, indices));
    const { seconds, phases } = result;
    note('rebuild, s', seconds);
    note('rebuild, peak disk ÷ one copy', peak / copy);
    for (const phase of PHASES) {
      note(`rebuild, ${phase}, s`, phases[phase].seconds);
      note(`rebuild, ${phase}, peak memory of the rebuild process, MB`, phases[phase].megabytes);
    }
    note('rebuild, comparing, share of the time, %', (phases.comparing.seconds * 100) / seconds);
  } finally {
    await service.stop();
    await rm(path);
  }
}

/** Waits for `work`. @returns its result, and the largest value of `sample` meanwhile. */
async function withPeak<T>(
  work: Promise<T>,
  sample: () => Promise<number>,
): Promise<{ result: T; peak: number }> {
  let isOver = false;
  let peak = 0;
  const sampling = async () => {
    while (!isOver) {
      peak = Math.max(peak, await sample());
      await pause(SAMPLE_MS);
    }
  };
  const sampled = sampling();
  const result = await work.finally(() => (isOver = true));
  await sampled;
  return { result, peak };
}

async function serve(size: number, env: Record<string, string>): Promise<Served> {
  const service = await ServerProcess.start('dist/main.js', { ...env, REGISTRY_SLUG: slugOf(size) });
  return { size, service, client: new BaselineClient(service.url, 1) };
}

async function compareSearches(figures: Figures, both: BothServed, names: readonly string[]): Promise<void> {
  const queries = makeQueries(names, QUERIES_PER_KIND);
  for (const served of both) await countResults(figures, served, queries);
  const rounds = await interleaveRounds(queries, contestantsOf(both, searchPath), ROUNDS);
  const roundsOf = (kind: Kind) => {
    const isKind = (_time: number, i: number) => queries[i]?.kind === kind;
    return rounds.map(([large, small]): Round => [large.filter(isKind), small.filter(isKind)]);
  };
  noteStatistics(figures, 'search, all queries', both, rounds, { mean, p50, p95, p99 });
  for (const kind of KINDS) noteStatistics(figures, `search, ${kind}`, both, roundsOf(kind), { mean });
  figures.judge('search, all queries: mean', RATIO, medianRatio(rounds, mean), 1.15);
  figures.judge('search, broad: mean', RATIO, medianRatio(roundsOf('broad'), mean), 1.15);
}

/** Notes how many results the searches have: more names contain more of them, which takes longer. */
async function countResults(
  figures: Figures,
  { size, client }: Served,
  queries: readonly Query[],
): Promise<void> {
  const counts: { kind: Kind; count: number }[] = [];
  for (const query of queries) {
    const { count } = JSON.parse(await client.get(searchPath(query))) as { count: number };
    counts.push({ kind: query.kind, count });
  }
  for (const kind of KINDS) {
    const ofKind = counts.filter((one) => one.kind === kind).map(({ count }) => count);
    figures.note(`search, ${kind}: mean number of results`, columnOf(size), mean(ofKind));
  }
}

/** Compares the last pages of `/browse` with the first ones. The goal is for the larger dataset. */
async function comparePages(figures: Figures, { size, client }: Served): Promise<void> {
  const column = columnOf(size);
  const rounds = await browseRounds(client, size, BROWSE_REQUESTS, ROUNDS);
  figures.note('browse, last page: mean, ms', column, median(rounds.map(([last]) => mean(last))));
  figures.note('browse, first page: mean, ms', column, median(rounds.map(([, first]) => mean(first))));
  const figure = 'browse, last page ÷ first page: p50';
  const ratio = medianRatio(rounds, p50);
  if (size === SMALL) figures.note(figure, column, ratio);
  else figures.judge(figure, column, ratio, 1.1);
}

async function compareSimilar(figures: Figures, both: BothServed, names: readonly string[]): Promise<void> {
  const random = seededRandom(20_261_123);
  const typos = Array.from({ length: TYPOS }, () => typo(random, pick(random, names)));
  const contestants = contestantsOf(both, (name: string) => similarPath(name));
  const rounds = await interleaveRounds(typos, contestants, ROUNDS);
  noteStatistics(figures, '/similar', both, rounds, { p50, p95, p99 });
  figures.note('/similar: p50', RATIO, medianRatio(rounds, p50));
  figures.note('/similar: p99', RATIO, medianRatio(rounds, p99));
}

/** Reads the same number of pages of either dataset. @param largest names of the larger one. */
async function measureChanges(
  figures: Figures,
  { size, service }: Served,
  names: readonly string[],
  largest: number,
): Promise<void> {
  const rounds = Math.round((CHANGES_ROUNDS * largest) / size);
  const { searches, pages } = await readChanges(service, names, changeCount(size), rounds);
  const column = columnOf(size);
  figures.note('/changes, a page of 500: p50, ms', column, p50(pages));
  figures.note('/changes, p50 ÷ p50 of searches in turns', column, p50(pages) / p50(searches));
  figures.note('/changes, p99 ÷ p50 of searches in turns', column, p99(pages) / p50(searches));
}

/** Prints all figures, writes them, and draws the chart. */
async function publish({ rows }: Figures, names: number): Promise<void> {
  console.table(
    Object.fromEntries(
      Object.entries(rows).map(([figure, values]) => [
        figure,
        Object.fromEntries(Object.entries(values).map(([column, value]) => [column, rounded(value)])),
      ]),
    ),
    [columnOf(SMALL), columnOf(names), RATIO, GOAL],
  );
  const results = { taken_at: new Date().toISOString(), node: process.version, names, figures: rows };
  await writeFile(RESULTS, `${JSON.stringify(results, null, 2)}\n`);
  const valuesOf = (size: number) => CHARTED.map((figure) => rounded(rows[figure]?.[columnOf(size)] ?? NaN));
  await barChart(CHART, {
    title: 'Time per uncached request, by number of names, ms',
    categories: CHARTED.map((figure) => figure.replace(/, ms$/, '')),
    series: Object.fromEntries([SMALL, names].map((size) => [columnOf(size), valuesOf(size)])),
  });
  console.log(`Written to ${RESULTS} and ${CHART}.`);
}

/** Notes statistics of the times of both sizes, in milliseconds: medians over rounds. */
function noteStatistics(
  figures: Figures,
  request: string,
  both: BothServed,
  rounds: readonly Round[],
  statistics: Record<string, Statistic>,
): void {
  for (const [name, statistic] of Object.entries(statistics)) {
    for (const [which, { size }] of both.entries()) {
      const values = rounds.map((round) => statistic(round[which as 0 | 1]));
      figures.note(`${request}: ${name}, ms`, columnOf(size), median(values));
    }
  }
}

/** Sends the same request to both sizes. */
function contestantsOf<T>([large, small]: BothServed, path: (item: T) => string): Contestants<T> {
  return [(item) => large.client.get(path(item)), (item) => small.client.get(path(item))];
}

function slugOf(size: number): string {
  return `growth${size}`;
}

function columnOf(size: number): string {
  return `${size.toLocaleString('en')} names`;
}

/** Three significant digits, or all digits of a whole part with more. */
function rounded(value: number): number {
  return value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}

if (!Number.isSafeInteger(NAMES) || NAMES <= SMALL) {
  throw new RangeError(`--names must be an integer above ${SMALL.toLocaleString('en')}`);
}
const figures = new Figures();
await withEngines(async ({ elasticsearch, input }) => {
  const env = uncachedEnv(elasticsearch.url);
  for (const size of [SMALL, NAMES]) {
    await measureLoad(figures, size, env, input);
    await measureChangedRebuild(figures, size, env, input);
  }
  // A process that has loaded a dataset is slower than one that only serves it.
  const large = await serve(NAMES, env);
  const small = await serve(SMALL, env);
  const both = [large, small] as const;
  try {
    const sample = await sampleNames(SMALL);
    await compareSearches(figures, both, sample);
    for (const served of both) await comparePages(figures, served);
    await compareSimilar(figures, both, sample);
    for (const served of both) await measureChanges(figures, served, sample, NAMES);
  } finally {
    await Promise.all(both.map(({ client }) => client.close()));
    await Promise.all(both.map(({ service }) => service.stop()));
  }
});
await publish(figures, NAMES);
exitByGoals();
