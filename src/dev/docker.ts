import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { GenericContainer, getContainerRuntimeClient, Wait } from 'testcontainers';
import { ELASTICSEARCH_VERSION, javaOptions } from './elasticsearch.js';
import type { Service } from './service.js';
import { onFreePort } from './free-port.js';

export const ELASTICSEARCH_IMAGE = `elasticsearch:${ELASTICSEARCH_VERSION}`;
export const REDIS_IMAGE = 'redis:8.0-alpine';
const START_TIMEOUT_MS = 300_000;
/** How long a container may take to stop before it is killed, in milliseconds. */
const STOP_MS = 30_000;
const RESTART_POLL_MS = 100;
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

interface ElasticsearchContainerOptions {
  /** Such as `1g`. */
  heap: string;
  /** A named volume for the data; without one, it is deleted with the container. */
  volume?: string | undefined;
  /** HTTP port to use if it is free. */
  usualPort?: number | undefined;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
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

export async function startRedisContainer(
  usualPort: number | undefined,
  signal: AbortSignal,
): Promise<Service> {
  return new ServiceContainer(REDIS_IMAGE)
    .withCommand(['redis-server', '--save', '', '--appendonly', 'no'])
    .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
    .startService('redis', 6379, usualPort, signal);
}

class ServiceContainer extends GenericContainer {
  #id: string | undefined;

  protected override containerCreated(id: string): Promise<void> {
    this.#id = id;
    return Promise.resolve();
  }

  /** Starts the container. If the start fails or is aborted, nothing is left behind. */
  async startService(
    scheme: 'http' | 'redis',
    containerPort: number,
    usualPort: number | undefined,
    signal: AbortSignal,
  ): Promise<Service> {
    const { host } = (await getContainerRuntimeClient()).info.containerRuntime;
    // Bound to loopback, because there is no password, unless Docker runs on another machine.
    const local = host === 'localhost' || host === LOOPBACK;
    // It may have exited in the meantime.
    const kill = () =>
      void this.#handle()
        .then((container) => container?.kill())
        .catch(() => undefined);
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
        stop: async () => {
          await started.stop({ timeout: STOP_MS });
        },
        kill: async () => {
          await (await this.#handle())?.kill();
        },
        pause: async () => {
          await (await this.#handle())?.pause();
        },
        resume: async () => {
          await (await this.#handle())?.unpause();
        },
        // Not with testcontainers, which waits for a log line that it may have missed.
        restart: async () => {
          await (await this.#handle())?.restart();
          while (!(await responds(scheme, local ? LOOPBACK : host, port))) {
            await pause(RESTART_POLL_MS);
            signal.throwIfAborted();
          }
        },
      };
    } finally {
      signal.removeEventListener('abort', kill);
    }
  }

  async #startOn(port: number, containerPort: number, local: boolean, signal: AbortSignal) {
    // Replaces the port of the previous attempt.
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
      await (await this.#handle())?.remove({ force: true, v: true }).catch(() => undefined);
      throw error;
    }
  }

  async #handle() {
    if (this.#id === undefined) return undefined;
    return (await getContainerRuntimeClient()).container.getById(this.#id);
  }
}

/** Whether the service responds. The caller decides when to stop trying. */
async function responds(scheme: 'http' | 'redis', host: string, port: number): Promise<boolean> {
  if (scheme === 'http') {
    const url = `http://${host}:${port}/_cluster/health?wait_for_status=yellow&timeout=1s`;
    return fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  }
  const redis = new Redis(port, host, { lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    await redis.ping();
    return true;
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

/** Whether Docker could not publish the port because it is taken. */
function isPortTaken(error: unknown): boolean {
  return /port is already allocated|address already in use/i.test((error as Error).message);
}
