import { expect } from 'chai';
import { Redis } from 'ioredis';
import { engines } from './engines.js';
import { REBUILD_SECRET, type Service, type SuiteService } from './service.js';
import { SpawnedCli } from './spawn-cli.js';

/** Time to live of a lock after its last renewal, as documented, in milliseconds. */
const LOCK_MS = 10_000;

/** Starts another replica of a suite's service in a child process. */
export function spawnReplica(suite: SuiteService, env: Record<string, string> = {}): SpawnedCli {
  return new SpawnedCli('main', {
    ...suite.service.env,
    PORT: '0',
    DATASET_URL: suite.dataset.url,
    REBUILD_SECRET,
    RATE_LIMIT_POINTS: '0',
    ...env,
  });
}

/** Ends the lock of a killed or suspended rebuild, which would expire in time. */
export async function endLock({ slug }: Service): Promise<void> {
  const redis = new Redis(engines().redis.url);
  const key = `${slug}:rebuild-v2:lock`;
  const remainingMs = await redis.pttl(key);
  await redis.del(key);
  redis.disconnect();
  expect(remainingMs, 'milliseconds until the lock expires').to.be.within(1, LOCK_MS);
}
