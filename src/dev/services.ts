import { join } from 'node:path';
import { startElasticsearchProcess } from './elasticsearch.js';
import { SetupError, type Service, type Log } from './service.js';
import { hasDocker, startElasticsearchContainer, startRedisContainer } from './docker.js';
import { makeFolder, type Paths } from './paths.js';
import { startRedisProcess } from './redis.js';
import { ProcessError } from './managed-process.js';

interface ServiceOptions {
  paths: Paths;
  /** Of the engines' data; a Docker volume of the same name keeps Elasticsearch's. */
  folder: string;
  volume: string | undefined;
  /** Elasticsearch's, such as `1g`. */
  heap: string;
  /** Whether people shall find them where they look first, if these ports are free. */
  onUsualPorts: boolean;
  env: NodeJS.ProcessEnv;
  log: Log;
  signal: AbortSignal;
}

/** A real Elasticsearch: from Docker where its engine answers, otherwise assembled from Maven Central. */
export async function startElasticsearch({
  paths,
  folder,
  volume,
  heap,
  onUsualPorts,
  env,
  log,
  signal,
}: ServiceOptions): Promise<Service> {
  const usualPort = onUsualPorts ? 9200 : undefined;
  return startFromDockerOrMaven(
    'Elasticsearch',
    'ELASTICSEARCH_URL',
    () => startElasticsearchContainer(heap, volume, usualPort, signal),
    () =>
      startElasticsearchProcess({
        paths,
        folder: join(makeFolder(folder, paths.runAs), 'elasticsearch'),
        heap,
        usualPort,
        env,
        log,
        signal,
      }),
    log,
    signal,
  );
}

/** A real Redis, likewise. */
export async function startRedis(options: ServiceOptions): Promise<Service> {
  const { paths, folder, onUsualPorts, env, log, signal } = options;
  const usualPort = onUsualPorts ? 6379 : undefined;
  return startFromDockerOrMaven(
    'Redis',
    'REDIS_URL',
    () => startRedisContainer(usualPort, signal),
    () =>
      startRedisProcess(paths, join(makeFolder(folder, paths.runAs), 'redis'), usualPort, env, log, signal),
    log,
    signal,
  );
}

async function startFromDockerOrMaven(
  name: string,
  variable: string,
  fromDocker: () => Promise<Service>,
  fromMaven: () => Promise<Service>,
  log: Log,
  signal: AbortSignal,
): Promise<Service> {
  if (await hasDocker()) {
    try {
      return await fromDocker();
    } catch (error) {
      signal.throwIfAborted();
      log(`Docker could not run ${name} (${firstLine(error)}); trying without it.`);
    }
  }
  try {
    return await fromMaven();
  } catch (error) {
    // What was there and did not get ready has said why.
    if (!(error instanceof SetupError) || error instanceof ProcessError) throw error;
    throw new SetupError(
      `${name} cannot be had: ${error.message}. It comes from a Docker engine, or from Maven and a JDK 21+, or from an address in ${variable}.`,
      { cause: error },
    );
  }
}

function firstLine(error: unknown): string {
  return (error as Error).message.split('\n')[0] ?? '';
}
