import getPort from 'get-port';
import { GenericContainer, getContainerRuntimeClient, Wait, type StartedTestContainer } from 'testcontainers';
import { ELASTICSEARCH_VERSION } from './elasticsearch.js';
import type { Engine } from './engine.js';

const ELASTICSEARCH_IMAGE = `elasticsearch:${ELASTICSEARCH_VERSION}`;
const REDIS_IMAGE = 'redis:7.4-alpine';
const START_TIMEOUT_MS = 180_000;

/** Whether a Docker engine answers. */
export async function hasDocker(): Promise<boolean> {
  try {
    await getContainerRuntimeClient();
    return true;
  } catch {
    return false;
  }
}

/** @param volume a named volume that keeps the data; without one they go with the container. */
export async function startElasticsearchContainer(heap: string, volume: string | undefined): Promise<Engine> {
  const port = await getPort({ port: 9200 });
  const container = new GenericContainer(ELASTICSEARCH_IMAGE)
    .withEnvironment({
      'discovery.type': 'single-node',
      'xpack.security.enabled': 'false',
      'cluster.routing.allocation.disk.threshold_enabled': 'false',
      ES_JAVA_OPTS: `-Xms${heap} -Xmx${heap}`,
    })
    // A port of our choice, so that the address stays the same when the container is started again.
    .withExposedPorts({ container: 9200, host: port })
    .withWaitStrategy(Wait.forHttp('/_cluster/health?wait_for_status=yellow', 9200))
    .withStartupTimeout(START_TIMEOUT_MS);
  if (volume !== undefined) {
    container.withBindMounts([{ source: volume, target: '/usr/share/elasticsearch/data', mode: 'rw' }]);
  }
  const started = await container.start();
  return engineOf(started, `${ELASTICSEARCH_IMAGE} (Docker)`, `http://${started.getHost()}:${port}`);
}

export async function startRedisContainer(): Promise<Engine> {
  const port = await getPort({ port: 6379 });
  const started = await new GenericContainer(REDIS_IMAGE)
    .withCommand(['redis-server', '--save', '', '--appendonly', 'no'])
    .withExposedPorts({ container: 6379, host: port })
    .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
    .withStartupTimeout(START_TIMEOUT_MS)
    .start();
  return engineOf(started, `${REDIS_IMAGE} (Docker)`, `redis://${started.getHost()}:${port}`);
}

function engineOf(started: StartedTestContainer, description: string, url: string): Engine {
  const container = async () => (await getContainerRuntimeClient()).container.getById(started.getId());
  return {
    description,
    url,
    stop: async () => {
      await started.stop();
    },
    kill: async () => {
      await (await container()).kill();
    },
    revive: async () => {
      await (await container()).start();
    },
  };
}
