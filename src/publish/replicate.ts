import type { Client } from '@elastic/elasticsearch';
import { retry, waitUntilDone, type LongStepOptions } from './retry.js';

/**
 * Sets the number of copies and the usual refresh interval, and waits until all copies exist, which may take hours.
 * @param replicas INDEX_REPLICAS: a number or a range.
 * @throws {Error} if no copy makes progress: there may be too few nodes, or no disk space.
 */
export async function replicate(
  client: Client,
  index: string,
  replicas: string,
  options: LongStepOptions,
): Promise<void> {
  const copies = replicas.includes('-')
    ? { auto_expand_replicas: replicas }
    : { auto_expand_replicas: 'false', number_of_replicas: Number(replicas) };
  const settings = { ...copies, refresh_interval: '1s' };
  await retry((signal) => client.indices.putSettings({ index, settings }, { signal }), options);
  // A copy that fails begins again. The bytes that it repeats are no progress.
  let most = 0;
  await waitUntilDone(
    `copying the index (INDEX_REPLICAS=${replicas})`,
    async (signal) => {
      // Lists only shards that are not green. The cluster health API would require the privilege to monitor the cluster.
      const { indices } = await client.indices.shardStores({ index }, { signal });
      if (Object.keys(indices).length === 0) return { done: true, evidence: undefined };
      const { done, total } = await readBytes(client, index, signal);
      options.onBytes(done, total);
      most = Math.max(most, done);
      return { done: false, evidence: most };
    },
    options,
  );
}

async function readBytes(client: Client, index: string, signal: AbortSignal) {
  const found = await client.indices.recovery({ index }, { signal });
  const sizes = (found[index]?.shards ?? [])
    .filter(({ type }) => type === 'PEER')
    .map((copy) => copy.index.size);
  return {
    done: sizes.reduce((sum, size) => sum + Number(size.recovered_in_bytes), 0),
    total: sizes.reduce((sum, size) => sum + Number(size.total_in_bytes), 0),
  };
}
