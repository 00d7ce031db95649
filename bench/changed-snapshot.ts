import { setTimeout as pause } from 'node:timers/promises';
import { generatedPackages, writePackages } from '../test/fixtures/generated-dataset.js';
import { makeQueries } from '../test/fixtures/queries.js';
import { pick, seededRandom } from '../test/fixtures/random.js';
import { PHASES, type Phase } from '../src/rebuild/progress.js';
import type { PackageEntry } from '../src/snapshot/package-document.js';
import { timed } from './goals.js';
import { SECRET, searchPath, startRebuildable } from './load.js';
import type { ServerProcess } from './processes.js';

/** One package in this many is changed: removed, updated, or followed by an added one, in turn. */
const CHANGED_EVERY = 100;

const SAMPLE_MS = 100;

/** Number of changes in a changed snapshot of `names` generated names. */
export function changeCount(names: number): number {
  return Math.floor(names / CHANGED_EVERY);
}

/** The first `names` generated packages after the changes. */
async function* changedPackages(names: number): AsyncGenerator<PackageEntry> {
  for await (const entry of generatedPackages(names)) {
    const { no, name, url } = entry;
    const kind = no % CHANGED_EVERY === 0 ? (no / CHANGED_EVERY) % 3 : undefined;
    if (kind !== 0) yield kind === 1 ? { ...entry, version: '99' } : entry;
    if (kind === 2) yield { no: names + no, name: `${name}-added`, version: '1', url };
  }
}

/**
 * Writes a changed snapshot of `names` generated names to `path`, and starts a service that can rebuild from
 * it.
 * @param env selects the registry, which has loaded the unchanged snapshot.
 */
export async function startOnChanged(
  names: number,
  path: string,
  env: Record<string, string>,
): Promise<ServerProcess> {
  await writePackages(path, changedPackages(names));
  return startRebuildable(path, env);
}

interface Rebuilt {
  /** Duration of the rebuild. */
  seconds: number;
  /** Duration of each phase, and peak resident memory of the rebuild process in megabytes. */
  phases: Record<Phase, { seconds: number; megabytes: number }>;
}

/** Rebuilds and measures each phase. @throws {Error} if the rebuild is not accepted, or fails. */
export async function measureRebuild(service: ServerProcess): Promise<Rebuilt> {
  const phases = Object.fromEntries(
    PHASES.map((phase) => [phase, { seconds: 0, megabytes: 0 }]),
  ) as Rebuilt['phases'];
  const answer = await fetch(`${service.url}/rebuild?secret=${SECRET}`);
  if (answer.status !== 202) throw new Error(`the rebuild was not accepted: ${await answer.text()}`);
  const began = performance.now();
  let last = began;
  for (;;) {
    await pause(SAMPLE_MS);
    const { phase, megabytes, failure } = await sample(service);
    if (failure !== undefined) throw new Error(`the rebuild failed: ${failure}`);
    if (phase === undefined) break;
    const now = performance.now();
    const one = phases[phase];
    one.seconds += (now - last) / 1000;
    one.megabytes = Math.max(one.megabytes, megabytes);
    last = now;
  }
  return { seconds: (last - began) / 1000, phases };
}

interface Sample {
  /** Undefined if no rebuild is running. */
  phase: Phase | undefined;
  /** Resident memory of the rebuild process. */
  megabytes: number;
  /** Why the last rebuild failed; undefined if it did not. */
  failure: string | undefined;
}

async function sample(service: ServerProcess): Promise<Sample> {
  const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
  const [, phase] = /rebuild_phase\{phase="(\w+)",registry="\w+"\} 1/.exec(text) ?? [];
  const [, bytes] = /rebuild_memory_bytes\{[^}]*\} (\S+)/.exec(text) ?? [];
  const [, failure] = /rebuild_last_failure_timestamp_seconds\{reason="(.*?)",registry=/.exec(text) ?? [];
  return { phase: phase as Phase | undefined, megabytes: Number(bytes ?? 0) / 1e6, failure };
}

/**
 * Reads all pages of `/changes`, `rounds` times after a warm-up round, with a cold search before each page.
 * @param names the names that the searches are made from.
 * @param expected number of changes.
 * @returns times in milliseconds.
 */
export async function readChanges(
  { url }: ServerProcess,
  names: readonly string[],
  expected: number,
  rounds: number,
): Promise<{ searches: number[]; pages: number[] }> {
  const random = seededRandom(19);
  const queries = makeQueries(names, 1000);
  const searches: number[] = [];
  const pages: number[] = [];
  let response = { link: '', body: '' };
  const get = async (path: string) => {
    const answer = await fetch(url + path);
    response = { link: answer.headers.get('Link') ?? '', body: await answer.text() };
  };
  for (let round = 0; round <= rounds; round++) {
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
  return { searches, pages };
}
