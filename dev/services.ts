import { dirname, join } from 'node:path';
import { startElasticsearchProcess } from './elasticsearch.js';
import { SetupError, type Service, type StartOptions } from './service.js';
import type * as Docker from './docker.js';
import { DownloadError } from './maven.js';
import { makeFolder, makeReadableFolder } from './paths.js';
import { startRedisProcess } from './redis.js';
import { ProcessError } from './managed-process.js';

interface ServiceOptions extends Omit<StartOptions, 'usualPort'> {
  /** Docker volume of Elasticsearch's data. */
  volume: string | undefined;
  /** Heap size of Elasticsearch, such as `1g`. */
  heap: string;
  /** Whether to use the default ports if they are free. */
  onUsualPorts: boolean;
}

type Options = ServiceOptions & Pick<StartOptions, 'usualPort'>;

/** The services, with the variables for their addresses and the functions that start them. */
export const SERVICES = {
  elasticsearch: {
    name: 'Elasticsearch',
    variable: 'ELASTICSEARCH_URL',
    port: 9200,
    inDocker: (docker: typeof Docker, options: Options) => docker.startElasticsearchContainer(options),
    asProcess: startElasticsearchProcess,
  },
  redis: {
    name: 'Redis',
    variable: 'REDIS_URL',
    port: 6379,
    inDocker: (docker: typeof Docker, options: Options) => docker.startRedisContainer(options),
    asProcess: startRedisProcess,
  },
};

export type ServiceKind = keyof typeof SERVICES;

export const KINDS = Object.keys(SERVICES) as ServiceKind[];

/**
 * Starts a real Elasticsearch or Redis: in Docker if possible, otherwise as a local process.
 * @param options `folder` is the parent of the services' folders.
 */
export async function startService(kind: ServiceKind, options: ServiceOptions): Promise<Service> {
  const { name, inDocker } = SERVICES[kind];
  const { log, signal } = options;
  // Imported only here, because loading testcontainers takes a second.
  const docker = await import('./docker.js');
  if (await docker.hasDocker()) {
    try {
      return await inDocker(docker, withFolder(kind, options));
    } catch (error) {
      signal.throwIfAborted();
      log(`Docker could not run ${name} (${firstLine(error)}); trying without it.`);
    }
  }
  return startProcess(kind, options);
}

/** Starts a real Elasticsearch or Redis as a local process, even if Docker is available. */
export async function startProcess(kind: ServiceKind, options: ServiceOptions): Promise<Service> {
  const { name, variable, asProcess } = SERVICES[kind];
  try {
    return await asProcess(withFolder(kind, options));
  } catch (error) {
    // The message of a ProcessError needs no remedy: the end of the log gives the reason.
    if (!(error instanceof SetupError) || error instanceof ProcessError) throw error;
    throw couldNotStart(name, variable, error);
  }
}

/**
 * Creates the parent of the services' folders, for the user who runs the services.
 * @returns options with the service's own folder.
 */
function withFolder(kind: ServiceKind, options: ServiceOptions): Options {
  const { paths, onUsualPorts } = options;
  if (paths.runAs !== undefined) [paths.programs, dirname(paths.data)].forEach(makeReadableFolder);
  const folder = join(makeFolder(options.folder, paths.runAs), kind);
  return { ...options, folder, usualPort: onUsualPorts ? SERVICES[kind].port : undefined };
}

/** The error of a service that could not be started, with a remedy. */
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
