import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { rebuildsIndexOf } from '../../src/snapshot/index-names.js';
import { REBUILD_SECRET, type Service, type SuiteService } from './service.js';
import { SpawnedCli } from './spawn-cli.js';

/** How long a lock lasts after its last report, as documented, in milliseconds. */
const LOCK_MS = 30_000;

/** A report that was sent before its process was stopped has arrived after this time. */
const IN_FLIGHT_MS = 300;

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

/** Lets the lock of a killed or suspended rebuild expire now, also if a report of it is still in flight. */
export async function endLock({ slug, elasticsearch }: Service): Promise<void> {
  const state = { index: rebuildsIndexOf(slug), id: 'state' };
  const expiry = async () => {
    const { _source } = await elasticsearch.get<{ owner?: string; expires_at: number }>(state);
    expect(_source?.owner, 'the owner').to.be.a('string');
    return _source?.expires_at ?? 0;
  };
  expect((await expiry()) - Date.now(), 'milliseconds until the lock expires').to.be.within(1, LOCK_MS);
  do {
    await elasticsearch.update({ ...state, doc: { expires_at: 1 } });
    await pause(IN_FLIGHT_MS);
  } while ((await expiry()) !== 1);
}
