import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Service } from '../../src/dev/service.js';
import { startElasticsearchContainer, startRedisContainer } from '../../src/dev/docker.js';
import { startElasticsearch, startRedis } from '../../src/dev/services.js';
import { run } from '../../src/dev/run.js';
import { findPaths, makeFolder } from '../../src/dev/paths.js';

/** Timeout of the first suite, which may have to download Elasticsearch. In milliseconds. */
export const ENGINES_TIMEOUT_MS = 20 * 60_000;

const HEAP = '1g';

/** Set by `npm run test:containers`, which accepts only containers. */
const MUST_BE_CONTAINERS = process.env['TEST_ENGINES'] === 'containers';

interface Engines {
  elasticsearch: Service;
  redis: Service;
  folder: string;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

let started: Promise<Engines> | undefined;

/**
 * Starts the Elasticsearch and the Redis that all suites of this run share: testcontainers if a Docker engine
 * responds, otherwise the local ones of `npm start` (`npm run test:containers` fails instead). Bundles the
 * worker first, because rebuilds run in it.
 * @throws if an engine is not available: no test runs without real engines.
 */
export function engines(): Promise<Engines> {
  started ??= start();
  return started;
}

/** Stops them, if they were started. */
export async function stopEngines(): Promise<void> {
  const running = await started?.catch(() => undefined);
  if (running === undefined) return;
  await Promise.all([running.elasticsearch.stop(), running.redis.stop()]);
  await rm(running.folder, { recursive: true, force: true });
}

async function start(): Promise<Engines> {
  const paths = findPaths(process.env);
  const folder = makeFolder(await mkdtemp(join(tmpdir(), 'package-registry-search-test-')), paths.runAs);
  const log = (line: string) => console.log(line);
  const { signal } = new AbortController();
  const options = {
    paths,
    folder,
    volume: undefined,
    heap: HEAP,
    onUsualPorts: false,
    env: process.env,
    log,
    signal,
  };
  try {
    await run('npm', ['run', '--silent', 'build:worker'], { cwd: ROOT });
    const redis = MUST_BE_CONTAINERS
      ? await startRedisContainer(undefined, signal)
      : await startRedis(options);
    try {
      const elasticsearch = MUST_BE_CONTAINERS
        ? await startElasticsearchContainer({ heap: HEAP, env: process.env, signal })
        : await startElasticsearch(options);
      log(`${elasticsearch.description}\n${redis.description}`);
      return { elasticsearch, redis, folder };
    } catch (error) {
      await redis.stop();
      throw error;
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}
