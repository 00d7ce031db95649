import { join } from 'node:path';
import { startElasticsearch } from './elasticsearch.js';
import { LocalError, type Engine, type Say } from './engine.js';
import { hasDocker, startElasticsearchContainer, startRedisContainer } from './docker.js';
import { makeFolder, type Places } from './places.js';
import { startRedis } from './redis.js';
import { ProgramError } from './supervised.js';

interface EngineOptions {
  places: Places;
  /** Of the engines' data; a Docker volume of the same name keeps Elasticsearch's. */
  folder: string;
  volume: string | undefined;
  /** Elasticsearch's, such as `1g`. */
  heap: string;
  /** Whether people shall find them where they look first, if these ports are free. */
  onUsualPorts: boolean;
  env: NodeJS.ProcessEnv;
  say: Say;
  signal: AbortSignal;
}

/** A real Elasticsearch: from Docker where its engine answers, otherwise assembled from Maven Central. */
export async function obtainElasticsearch({
  places,
  folder,
  volume,
  heap,
  onUsualPorts,
  env,
  say,
  signal,
}: EngineOptions): Promise<Engine> {
  const usualPort = onUsualPorts ? 9200 : undefined;
  return obtain(
    'Elasticsearch',
    'ELASTICSEARCH_URL',
    () => startElasticsearchContainer(heap, volume, usualPort, signal),
    () =>
      startElasticsearch({
        places,
        folder: join(makeFolder(folder, places.runAs), 'elasticsearch'),
        heap,
        usualPort,
        env,
        say,
        signal,
      }),
    say,
    signal,
  );
}

/** A real Redis, likewise. */
export async function obtainRedis(options: EngineOptions): Promise<Engine> {
  const { places, folder, onUsualPorts, env, say, signal } = options;
  const usualPort = onUsualPorts ? 6379 : undefined;
  return obtain(
    'Redis',
    'REDIS_URL',
    () => startRedisContainer(usualPort, signal),
    () => startRedis(places, join(makeFolder(folder, places.runAs), 'redis'), usualPort, env, say, signal),
    say,
    signal,
  );
}

async function obtain(
  name: string,
  variable: string,
  fromDocker: () => Promise<Engine>,
  fromMaven: () => Promise<Engine>,
  say: Say,
  signal: AbortSignal,
): Promise<Engine> {
  if (await hasDocker()) {
    try {
      return await fromDocker();
    } catch (error) {
      signal.throwIfAborted();
      say(`Docker could not run ${name} (${firstLine(error)}); trying without it.`);
    }
  }
  try {
    return await fromMaven();
  } catch (error) {
    // What was there and did not get ready has said why.
    if (!(error instanceof LocalError) || error instanceof ProgramError) throw error;
    throw new LocalError(
      `${name} cannot be had: ${error.message}. It comes from a Docker engine, or from Maven and a JDK 21+, or from an address in ${variable}.`,
      { cause: error },
    );
  }
}

function firstLine(error: unknown): string {
  return (error as Error).message.split('\n')[0] ?? '';
}
