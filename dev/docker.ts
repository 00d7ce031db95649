import { GenericContainer, getContainerRuntimeClient, Wait } from 'testcontainers';
import { ELASTICSEARCH_VERSION, javaOptions } from './elasticsearch.js';
import type { Service, StartOptions } from './service.js';
import { onFreePort } from './free-port.js';

export const ELASTICSEARCH_IMAGE = `elasticsearch:${ELASTICSEARCH_VERSION}`;
export const REDIS_IMAGE = 'redis:8.0-alpine';
const START_TIMEOUT_MS = 300_000;
/** Time for a container to stop before it is killed, in milliseconds. */
const STOP_MS = 30_000;
const LOOPBACK = '127.0.0.1';

/** Whether Docker is available. */
export async function hasDocker(): Promise<boolean> {
  try {
    await getContainerRuntimeClient();
    return true;
  } catch {
    return false;
  }
}

interface ElasticsearchContainerOptions extends Pick<StartOptions, 'usualPort' | 'env' | 'signal'> {
  /** Such as `1g`. */
  heap: string;
  /** A named volume for the data. Without a volume, the data is deleted with the container. */
  volume?: string | undefined;
}

export async function startElasticsearchContainer({
  heap,
  volume,
  usualPort,
  env,
  signal,
}: ElasticsearchContainerOptions): Promise<Service> {
  const container = new ServiceContainer(ELASTICSEARCH_IMAGE)
    .withEnvironment({
      'discovery.type': 'single-node',
      'xpack.security.enabled': 'false',
      'cluster.routing.allocation.disk.threshold_enabled': 'false',
      ES_JAVA_OPTS: javaOptions(heap, env),
    })
    .withWaitStrategy(
      Wait.forHttp('/_cluster/health?wait_for_status=yellow', 9200, { abortOnContainerExit: true }),
    );
  if (volume !== undefined) {
    container.withBindMounts([{ source: volume, target: '/usr/share/elasticsearch/data', mode: 'rw' }]);
  }
  return container.startService('http', 9200, usualPort, signal);
}

export async function startRedisContainer({
  usualPort,
  signal,
}: Pick<StartOptions, 'usualPort' | 'signal'>): Promise<Service> {
  return new ServiceContainer(REDIS_IMAGE)
    .withCommand(['redis-server', '--save', '', '--appendonly', 'no'])
    .withWaitStrategy(Wait.forSuccessfulCommand('redis-cli ping'))
    .startService('redis', 6379, usualPort, signal);
}

type Container = ReturnType<Awaited<ReturnType<typeof getContainerRuntimeClient>>['container']['getById']>;

class ServiceContainer extends GenericContainer {
  /** Set as soon as the container is created, before `start` returns. */
  #created: Container | undefined;

  protected override async containerCreated(id: string): Promise<void> {
    this.#created = (await getContainerRuntimeClient()).container.getById(id);
  }

  /** Starts the container. If the start fails or is aborted, nothing is left behind. */
  async startService(
    scheme: 'http' | 'redis',
    containerPort: number,
    usualPort: number | undefined,
    signal: AbortSignal,
  ): Promise<Service> {
    const { host } = (await getContainerRuntimeClient()).info.containerRuntime;
    // The services have no password. If Docker runs on this machine, the port is bound to loopback.
    const local = host === 'localhost' || host === LOOPBACK;
    // The container may have exited in the meantime.
    const kill = () => void this.#created?.kill().catch(() => undefined);
    signal.addEventListener('abort', kill);
    try {
      // A fixed port, so that the address stays the same after a restart of the container.
      const { port, started } = await onFreePort(
        usualPort,
        (port) => this.#startOn(port, containerPort, local, signal),
        isPortTaken,
      );
      return {
        description: `${this.imageName.string} (Docker)`,
        url: `${scheme}://${local ? LOOPBACK : host}:${port}`,
        stop: () => started.stop({ timeout: STOP_MS }),
        kill: async () => this.#created?.kill() as Promise<void>,
        pause: async () => this.#created?.pause() as Promise<void>,
        resume: async () => this.#created?.unpause() as Promise<void>,
        restart: () => started.restart(),
      };
    } finally {
      signal.removeEventListener('abort', kill);
    }
  }

  async #startOn(port: number, containerPort: number, local: boolean, signal: AbortSignal) {
    // Removes the port of the previous attempt.
    this.exposedPorts = [];
    this.withExposedPorts({ container: containerPort, host: port }).withStartupTimeout(START_TIMEOUT_MS);
    if (local) {
      this.hostConfig.PortBindings = {
        [`${containerPort}/tcp`]: [{ HostIp: LOOPBACK, HostPort: String(port) }],
      };
    }
    try {
      signal.throwIfAborted();
      return await this.start();
    } catch (error) {
      await this.#created?.remove({ force: true, v: true }).catch(() => undefined);
      throw error;
    }
  }
}

/** Whether Docker could not publish the port because it is taken. */
function isPortTaken(error: unknown): boolean {
  return /port is already allocated|address already in use/i.test((error as Error).message);
}
