import { statfsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPaths, makeFolder } from '../../dev/paths.js';
import type { Service } from '../../dev/service.js';
import { KINDS, SERVICES, startProcess, startService, type ServiceKind as Kind } from '../../dev/services.js';

/** Timeout of a start, which may have to download Elasticsearch. In milliseconds. */
export const ENGINES_TIMEOUT_MS = 20 * 60_000;

const HEAP = '1g';

/** A file system in memory, on Linux, and the free bytes for the data of a run. */
const MEMORY = '/dev/shm';
const ROOM = 4e9;

/**
 * How engines are started: `containers` accepts only containers; `processes` does not look for Docker, which takes a
 * second in each process of a run.
 */
const VARIABLE = 'TEST_ENGINES';
/** Set by `npm test -- containers`. */
const MUST_BE_CONTAINERS = process.env[VARIABLE] === 'containers';

/** A real engine that this process started. */
export interface StartedEngine extends Service {
  /** Stops it and deletes its data. */
  end(): Promise<void>;
}

/** In memory if there is room: each change of the cluster state is written to disk, and a small rebuild makes a dozen. */
function dataFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > ROOM ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

/**
 * Starts an Elasticsearch or a Redis of its own: a container if a Docker engine responds, otherwise the local one of
 * `npm start` (`npm test -- containers` fails instead).
 * @throws if it is not available: no test runs without real engines.
 */
async function startEngine(kind: Kind): Promise<StartedEngine> {
  const paths = findPaths(process.env);
  const folder = makeFolder(await mkdtemp(join(dataFolder(), 'package-registry-search-test-')), paths.runAs);
  const log = (line: string) => console.log(line);
  const { signal } = new AbortController();
  const { env } = process;
  const options = { paths, folder, volume: undefined, heap: HEAP, onUsualPorts: false, env, log, signal };
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  const start = async () => {
    if (process.env[VARIABLE] === 'processes') return startProcess(kind, options);
    if (!MUST_BE_CONTAINERS) return startService(kind, options);
    return SERVICES[kind].inDocker(await import('../../dev/docker.js'), options);
  };
  try {
    const engine = await start();
    return { ...engine, end: () => engine.stop().then(removeFolder) };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

/** Turns off the JVM's optimizing compiler and parallel garbage collector, which take a third of the processor time of a short run. */
export function useFastStartingJvm(): void {
  process.env['ES_JAVA_OPTS'] ??= '-XX:TieredStopAtLevel=1 -XX:-UseG1GC -XX:+UseSerialGC';
}

const started: StartedEngine[] = [];

/**
 * Before the tests of a run: starts the engines that all of its processes share, and sets the variables with their
 * addresses. Engines whose address is given are used as they are, except by `npm test -- containers`.
 */
export async function provideEngines(): Promise<void> {
  for (const kind of KINDS) {
    const variable = SERVICES[kind].variable;
    if (process.env[variable] !== undefined && !MUST_BE_CONTAINERS) continue;
    const engine = await startEngine(kind);
    started.push(engine);
    process.env[variable] = engine.url;
    console.log(engine.description);
    const { hasDocker } = await import('../../dev/docker.js');
    if (!(await hasDocker())) process.env[VARIABLE] = 'processes';
  }
}

/** Stops what `provideEngines` started. */
export async function stopEngines(): Promise<void> {
  await Promise.all(started.splice(0).map((engine) => engine.end()));
}

/**
 * The engines of the run. They may belong to somebody else: a suite changes nothing but its own slug, and starts its
 * own engines (`useOwnEngine`) if it pauses, kills, configures or watches one.
 */
export function engines(): Record<Kind, { url: string }> {
  const urlOf = (kind: Kind) => {
    const url = process.env[SERVICES[kind].variable];
    if (url === undefined)
      throw new Error(`${SERVICES[kind].variable} is not set: only test/unit runs without engines`);
    return { url };
  };
  return { elasticsearch: urlOf('elasticsearch'), redis: urlOf('redis') };
}

/** Starts an engine for the calling suite, available only within its tests and later hooks. */
export function useOwnEngine(kind: Kind): () => StartedEngine {
  let engine: StartedEngine | undefined;
  before(async function () {
    this.timeout(ENGINES_TIMEOUT_MS);
    engine = await startEngine(kind);
  });
  after(() => engine?.end());
  return () => engine ?? expectStarted(kind);
}

function expectStarted(kind: Kind): never {
  throw new Error(`the ${kind} of a suite is available only within its tests`);
}
