import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { generatedPackages, writePackages } from '../fixtures/generated-dataset.js';
import { makeQueries } from '../fixtures/queries.js';
import { pick, seededRandom } from '../fixtures/random.js';
import { percentile } from '../fixtures/statistics.js';
import { PHASES } from '../src/rebuild/progress.js';
import type { PackageEntry } from '../src/search/package-document.js';
import { withEngines } from './engines.js';
import { exitByGoals, report, timed } from './goals.js';
import { load, SECRET, searchPath, uncachedEnv } from './load.js';
import { ServerProcess } from './processes.js';

/**
 * `npm run bench:changes` measures how much comparing two snapshots costs a rebuild when one name in a
 * hundred changed, and how long reading the changes takes, relative to cold searches of the same run. The
 * exit code is 1 if a goal was missed.
 */

const { values } = parseArgs({ options: { names: { type: 'string', default: '1000000' } } });
const NAMES = Number(values.names);

/** One package in this many is changed: removed, updated, or followed by an added one, in turn. */
const CHANGED_EVERY = 100;

/** Rounds in which all pages of changes are read, with a search before each page. */
const ROUNDS = 5;

const SAMPLE_MS = 100;

/** The generated packages after the changes. */
async function* changedPackages(): AsyncGenerator<PackageEntry> {
  for await (const entry of generatedPackages(NAMES)) {
    const { no, name, url } = entry;
    const kind = no % CHANGED_EVERY === 0 ? (no / CHANGED_EVERY) % 3 : undefined;
    if (kind !== 0) yield kind === 1 ? { ...entry, version: '99' } : entry;
    if (kind === 2) yield { no: NAMES + no, name: `${name}-added`, version: '1', url };
  }
}

/** The phase of a service's rebuild, and the resident memory of its process in megabytes. */
async function sample(service: ServerProcess): Promise<{ phase: string | undefined; megabytes: number }> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  const [, phase] = /rebuild_phase\{phase="(\w+)",registry="\w+"\} 1/.exec(text) ?? [];
  const [, bytes] = /rebuild_memory_bytes\{[^}]*\} (\S+)/.exec(text) ?? [];
  return { phase, megabytes: Number(bytes ?? 0) / 1e6 };
}

/** Rebuilds and measures each phase: seconds, and peak resident memory of the process in megabytes. */
async function measureRebuild(service: ServerProcess) {
  const phases = new Map(PHASES.map((phase) => [phase as string, { seconds: 0, megabytes: 0 }]));
  const answer = await fetch(`${service.url}/rebuild?secret=${SECRET}`);
  if (answer.status !== 202) throw new Error(`the rebuild was not accepted: ${await answer.text()}`);
  let last = performance.now();
  for (;;) {
    await pause(SAMPLE_MS);
    const { phase, megabytes } = await sample(service);
    const now = performance.now();
    const one = phases.get(phase ?? '');
    if (one === undefined) break;
    one.seconds += (now - last) / 1000;
    one.megabytes = Math.max(one.megabytes, megabytes);
    last = now;
  }
  return phases;
}

async function readChanges(
  { url }: ServerProcess,
  names: readonly string[],
  expected: number,
): Promise<void> {
  const random = seededRandom(19);
  const queries = makeQueries(names, 1000);
  const searches: number[] = [];
  const pages: number[] = [];
  let response = { link: '', body: '' };
  const get = async (path: string) => {
    const answer = await fetch(url + path);
    response = { link: answer.headers.get('Link') ?? '', body: await answer.text() };
  };
  for (let round = 0; round <= ROUNDS; round++) {
    let entries = 0;
    for (let next: string | undefined = '/changes?limit=500'; next !== undefined;) {
      const search = await timed(get(searchPath(pick(random, queries))));
      const page = await timed(get(next));
      entries += (JSON.parse(response.body) as { count: number }).count;
      const target = /<(\?[^>]*)>; rel="next"/.exec(response.link)?.[1];
      next = target && `/changes${target}`;
      // The first round warms up.
      if (round === 0) continue;
      searches.push(search);
      pages.push(page);
    }
    if (entries !== expected) throw new Error(`${entries} changes instead of ${expected}`);
  }
  const p50 = percentile(searches, 0.5);
  console.log(
    `cold search: p50 ${p50.toFixed(1)} ms; page of 500 changes: p50 ${percentile(pages, 0.5).toFixed(1)} ms`,
  );
  report(`${expected} changes, all pages: p99 ÷ p50 of cold searches`, percentile(pages, 0.99) / p50, 6);
}

await withEngines(async ({ elasticsearch, input }) => {
  const random = seededRandom(1);
  const names: string[] = [];
  for await (const { name } of generatedPackages(NAMES)) {
    if (random() < 10_000 / NAMES) names.push(name);
  }
  const env = uncachedEnv(elasticsearch.url);
  const loaded = await load(NAMES, { env, folder: input });
  await loaded.service.stop();
  const changed = join(input, 'changed.csv');
  await writePackages(changed, changedPackages());
  const service = await ServerProcess.start('dist/main.js', {
    ...env,
    METRICS_PORT: '0',
    REGISTRY_SLUG: loaded.slug,
    REBUILD_SECRET: SECRET,
    DATASET_URL: pathToFileURL(changed).href,
  });
  try {
    const phases = await measureRebuild(service);
    for (const [phase, { seconds, megabytes }] of phases) {
      console.log(`  ${phase.padEnd(12)} ${seconds.toFixed(1).padStart(6)} s  ${megabytes.toFixed(0)} MB`);
    }
    const total = [...phases.values()].reduce((sum, { seconds }) => sum + seconds, 0);
    const comparing = phases.get('comparing') ?? { seconds: NaN, megabytes: NaN };
    const before = PHASES.slice(0, PHASES.indexOf('comparing')).map((one) => phases.get(one)?.megabytes ?? 0);
    report('comparing: share of the rebuild time, percent', (comparing.seconds * 100) / total, 20);
    report('comparing: additional memory, megabytes', comparing.megabytes - Math.max(...before), 50);
    await readChanges(service, names, Math.floor(NAMES / CHANGED_EVERY));
  } finally {
    await service.stop();
  }
});
exitByGoals();
