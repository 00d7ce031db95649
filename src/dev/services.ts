import { join } from 'node:path';
import { startElasticsearchProcess } from './elasticsearch.js';
import { SetupError, type Service, type Log } from './service.js';
import type * as Docker from './docker.js';
import { DownloadError } from './maven.js';
import { makeFolder, type Paths } from './paths.js';
import { startRedisProcess } from './redis.js';
import { ProcessError } from './managed-process.js';

interface ServiceOptions {
  paths: Paths;
  /** Folder of the services' data. */
  folder: string;
  /** Docker volume of Elasticsearch's data. */
  volume: string | undefined;
  /** Heap size of Elasticsearch, such as `1g`. */
  heap: string;
  /** Whether to use the default ports if they are free. */
  onUsualPorts: boolean;
  env: NodeJS.ProcessEnv;
  log: Log;
  signal: AbortSignal;
}

/** Starts a real Elasticsearch: in Docker if available, otherwise from Maven Central. */
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
    (docker) => docker.startElasticsearchContainer({ heap, volume, usualPort, env, signal }),
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

/** Starts a real Redis, likewise. */
export async function startRedis(options: ServiceOptions): Promise<Service> {
  const { paths, folder, onUsualPorts, env, log, signal } = options;
  const usualPort = onUsualPorts ? 6379 : undefined;
  return startFromDockerOrMaven(
    'Redis',
    'REDIS_URL',
    (docker) => docker.startRedisContainer(usualPort, signal),
    () =>
      startRedisProcess(paths, join(makeFolder(folder, paths.runAs), 'redis'), usualPort, env, log, signal),
    log,
    signal,
  );
}

async function startFromDockerOrMaven(
  name: string,
  variable: string,
  fromDocker: (docker: typeof Docker) => Promise<Service>,
  fromMaven: () => Promise<Service>,
  log: Log,
  signal: AbortSignal,
): Promise<Service> {
  // Loading testcontainers takes a second, which is saved if the addresses of the services are given.
  const docker = await import('./docker.js');
  if (await docker.hasDocker()) {
    try {
      return await fromDocker(docker);
    } catch (error) {
      signal.throwIfAborted();
      log(`Docker could not run ${name} (${firstLine(error)}); trying without it.`);
    }
  }
  try {
    return await fromMaven();
  } catch (error) {
    // A program that did not become ready has already given the reason.
    if (!(error instanceof SetupError) || error instanceof ProcessError) throw error;
    throw couldNotStart(name, variable, error);
  }
}

/** Why a service could not be started, and what to do about it. */
export function couldNotStart(name: string, variable: string, cause: SetupError): SetupError {
  const remedy =
    cause instanceof DownloadError
      ? "Check the network and the proxy in Maven's settings"
      : 'Install Docker, or Maven and a JDK 21+';
  return new SetupError(
    `${name} could not be started: ${cause.message}. ${remedy}, or set ${variable} to a running one.`,
    { cause },
  );
}

function firstLine(error: unknown): string {
  return (error as Error).message.split('\n')[0] ?? '';
}
