import type { Client } from '@elastic/elasticsearch';
import { retry, waitUntilDone, type LongStepOptions } from '../retry.js';
import { assertOneSegment } from './merge.js';

/**
 * Copies a merged index with `waitForCopies`, and checks that each shard still has one segment.
 * @throws the errors of `waitForCopies` and `assertOneSegment`.
 */
export async function waitForReplicas(
  client: Client,
  { index, shards }: { index: string; shards: number },
  replicas: string,
  options: LongStepOptions,
): Promise<void> {
  await waitForCopies(client, index, replicas, options);
  await assertOneSegment(client, index, shards, options);
}

/**
 * Sets the number of copies and the usual refresh interval, and waits until all copies exist, which may take hours.
 * @param replicas INDEX_REPLICAS: a number or a range.
 * @throws {StalledError} if no copy makes progress: there may be too few nodes, or no disk space. {Error} if the copies
 * of a shard have failed, on average, more than twice.
 */
export async function waitForCopies(
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
  const attempts = new CopyAttempts();
  await waitUntilDone(
    `copying the index (INDEX_REPLICAS=${replicas})`,
    async (signal) => {
      const failures = await readMissing(client, index, signal);
      if (failures === undefined) return { done: true, evidence: undefined };
      const { done, total, copies } = await readCopies(client, index, signal);
      options.onBytes(done, total);
      attempts.add(copies, failures);
      return { done: false, evidence: attempts.evidence };
    },
    options,
  );
}

/** Maximum number of restarts of a copy: a node may restart twice. */
const MAX_RESTARTS = 2;

/** The copy of a shard to another node, as Elasticsearch reports it. */
interface Copy {
  shard: number;
  startedAt: number;
  /** Bytes, operations and stage: everything that changes while the copy advances. */
  progress: string;
}

/**
 * Counts the attempts to copy each shard. The recovery API does not report failed copies, so a new start time counts as
 * another attempt.
 */
class CopyAttempts {
  /** By shard: the start times of its copies, and the highest number of copies at a time. */
  readonly #shards = new Map<number, { starts: Set<number>; copies: number }>();
  readonly #seen = new Set<string>();

  /**
   * Number of different states seen so far. A restarted copy repeats earlier states, so they do not count as progress
   * again.
   */
  get evidence(): number {
    return this.#seen.size;
  }

  /**
   * @param failures error types of failed copies, for the message.
   * @throws {Error} if a copy was restarted too often.
   */
  add(copies: readonly Copy[], failures: readonly string[]): void {
    for (const { shard, startedAt, progress } of copies) {
      const known = this.#shards.get(shard) ?? { starts: new Set(), copies: 0 };
      this.#shards.set(shard, known);
      known.starts.add(startedAt);
      known.copies = Math.max(known.copies, copies.filter((copy) => copy.shard === shard).length);
      this.#seen.add(`${shard} ${progress}`);
      if (known.starts.size > known.copies * (MAX_RESTARTS + 1)) {
        const reasons = failures.length === 0 ? '' : `: ${failures.join(', ')}`;
        throw new Error(`a copy of shard ${shard} failed ${MAX_RESTARTS + 1} times${reasons}`);
      }
    }
  }
}

/**
 * The error types of missing copies. Undefined if every copy exists. The request lists only shards that are not green.
 * The cluster health API would require the privilege to monitor the whole cluster.
 */
async function readMissing(
  client: Client,
  index: string,
  signal: AbortSignal,
): Promise<string[] | undefined> {
  const { indices } = await client.indices.shardStores({ index }, { signal });
  if (Object.keys(indices).length === 0) return undefined;
  const stores = Object.values(indices[index]?.shards ?? {}).flatMap((shard) => shard.stores);
  return [...new Set(stores.flatMap(({ store_exception: error }) => error?.type ?? []))];
}

/** The bytes copied so far, the total bytes to copy, and the state of each copy. */
async function readCopies(client: Client, index: string, signal: AbortSignal) {
  const found = await client.indices.recovery({ index }, { signal });
  const copies = (found[index]?.shards ?? []).filter(({ type }) => type === 'PEER');
  const sum = (bytes: (copy: (typeof copies)[number]) => unknown) =>
    copies.reduce((total, copy) => total + Number(bytes(copy) ?? 0), 0);
  return {
    done: sum(({ index: files }) => files.size.recovered_in_bytes),
    total: sum(({ index: files }) => files.size.total_in_bytes),
    copies: copies.map(({ id, start_time_in_millis, stage, translog, index: files }): Copy => ({
      shard: id,
      startedAt: start_time_in_millis,
      progress: `${stage} ${translog.recovered} ${files.size.recovered_in_bytes}`,
    })),
  };
}
