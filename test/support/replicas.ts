import { expect } from 'chai';
import { rebuildsIndexOf } from '../../src/snapshot/index-names.js';
import { LOCK_WAIT_SECONDS } from './long-runs.js';
import { REBUILD_SECRET, type Service, type SuiteService } from './service.js';
import { SpawnedCli } from './spawn-cli.js';
import { waitFor } from './wait-for.js';

/** How long a lock lasts after its last report, as documented, in milliseconds. */
const LOCK_MS = 30_000;

/** How often to look whether it has expired, in milliseconds. */
const POLL_MS = 500;

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

/**
 * Lets the lock of a killed or suspended rebuild expire now. The document gets another owner, because a report may
 * still be in flight. With `LOCK_WAIT_SECONDS`, waits until the lock has expired.
 */
export async function endLock({ slug, elasticsearch }: Service): Promise<void> {
  const state = { index: rebuildsIndexOf(slug), id: 'state' };
  const remainingMs = async () => {
    const { _source } = await elasticsearch.get<{ owner?: string; expires_at: number }>(state);
    expect(_source?.owner, 'the owner').to.be.a('string');
    return (_source?.expires_at ?? 0) - Date.now();
  };
  expect(await remainingMs(), 'milliseconds until the lock expires').to.be.within(1, LOCK_MS);
  if (LOCK_WAIT_SECONDS === 0) {
    const doc = { owner: 'has ended', expires_at: 1 };
    await elasticsearch.update({ ...state, doc, retry_on_conflict: 5 });
    return;
  }
  // The clock of Elasticsearch advances in steps of 0.2 seconds.
  const hasExpired = async () => (await remainingMs()) < -300;
  await waitFor(hasExpired, 'the lock to expire', LOCK_WAIT_SECONDS * 1000, POLL_MS);
}
