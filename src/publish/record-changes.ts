import type { Client } from '@elastic/elasticsearch';
import { describeAuthError } from '../elasticsearch/elasticsearch.js';
import { changeDocument, kindOf, type ChangeKind } from '../snapshot/change-record.js';
import { isReadable, type FoundIndex, type Snapshot } from '../snapshot/snapshot.js';
import { optionalFields, type RecordedChain } from '../snapshot/snapshot-meta.js';
import { isVolatile } from '../snapshot/package-fields.js';
import { changesIndexOf, loadingAliasOf, snapshotIdOf } from '../snapshot/index-names.js';
import { load } from './load.js';
import { compare } from './compare.js';
import { seal } from './merge.js';
import { createIndex } from './create.js';
import { replicate } from './replicate.js';
import type { PublishContext, PublishOptions } from './publish.js';
import { retry, type LongStepOptions, type RetryOptions } from './retry.js';

/** The recording fails after this time without progress, in milliseconds: changes must not delay fresh data. */
const STALL_MS = 60_000;

/** The lineage of a snapshot that starts a new chain: no ancestors, no changes. */
const NEW_CHAIN: RecordedChain = { ancestors: [], added: 0, removed: 0, updated: 0 };

/** The snapshots cannot be compared or differ too much: a new chain begins. */
class NewChainError extends Error {
  override readonly name = 'NewChainError';
}

type Context = Pick<PublishContext, 'client' | 'exportPool' | 'alias'>;

/** A new snapshot that is complete and not served yet. */
type NewIndex = Omit<Snapshot, 'id'>;

interface RecordOptions extends LongStepOptions, Pick<PublishOptions, 'replicas' | 'retention'> {
  onRows: (rows: number) => void;
}

/**
 * Compares a new snapshot with the one being served, writes the differences to a separate index, and records the chain
 * in the new snapshot's `_meta`. A failure is logged and does not fail the rebuild. The snapshot then starts a new
 * chain. If ELASTICSEARCH_REBUILD_API_KEY lacks a privilege, the snapshot has no chain.
 * @param served the index being served; undefined if no index is served.
 * @returns the index of the changes, which keeps its loading alias until the flip; undefined if no changes were
 * recorded.
 * @throws only if `signal` aborts.
 */
export async function recordChanges(
  context: Context,
  served: FoundIndex | undefined,
  created: NewIndex,
  options: RecordOptions,
): Promise<string | undefined> {
  const { client, alias } = context;
  const { index } = created;
  const { replicas, retention } = options;
  if (retention === 0) return undefined;
  const step = { stallMs: STALL_MS, ...options };
  const changes = changesIndexOf(alias, snapshotIdOf(index));
  try {
    if (served === undefined) {
      await recordChain(client, created, NEW_CHAIN, step);
      return undefined;
    }
    if (!isReadable(served)) throw new NewChainError('the _meta of the previous snapshot is not readable');
    if (served.closed) throw new NewChainError('the index of the previous snapshot is closed');
    const { name_rule: nameRule } = created.meta;
    if (served.meta.name_rule !== nameRule)
      throw new NewChainError('the previous snapshot has another NAME_RULE');
    await createIndex(client, 'changes', { index: changes, nameRule }, step);
    const counts = await writeChanges(context, served, created, changes, step);
    await seal(client, changes, sum(counts), step);
    await replicate(client, changes, replicas, step);
    const ancestors = [served.id, ...(served.meta.lineage?.ancestors ?? [])].slice(0, retention);
    await recordChain(client, created, { ancestors, ...counts }, step);
    return changes;
  } catch (error) {
    options.signal.throwIfAborted();
    await startNewChain(client, changes, created, error, options);
    return undefined;
  }
}

/** If the reason is a missing privilege, only logs a warning. */
async function startNewChain(
  client: Client,
  changes: string,
  created: NewIndex,
  reason: unknown,
  { log, signal }: RecordOptions,
): Promise<void> {
  const { index } = created;
  const refusal = describeAuthError(reason, 'ELASTICSEARCH_REBUILD_API_KEY');
  if (refusal !== undefined) {
    log.warn({ index, err: reason }, `${refusal}: /changes is unavailable; make keys with npm run keys`);
    return;
  }
  // These errors are expected, for example after another registry's list was loaded, so the log needs no stack.
  const why = reason instanceof NewChainError ? { reason: reason.message } : { err: reason };
  log.warn({ index, ...why }, 'the changes were not recorded: the snapshot starts a new chain');
  const orWarn = (message: string) => (error: unknown) => log.warn({ index, err: error }, message);
  await recordChain(client, created, NEW_CHAIN, { log, signal, stallMs: STALL_MS }).catch(
    orWarn('a new chain could not be recorded: /changes is unavailable'),
  );
  // This deletion needs no fence: no other process uses the index, and no flip depends on it.
  await client.indices
    .delete({ index: changes, ignore_unavailable: true }, { signal })
    .catch(orWarn('the index of changes could not be removed; the next rebuild tries again'));
}

async function recordChain(
  client: Client,
  { index, meta }: NewIndex,
  lineage: RecordedChain,
  options: RetryOptions,
): Promise<void> {
  // The rebuild key may change `_meta` only through the loading alias. The flip removes this alias, so the key cannot
  // change a served index.
  const body = { index: loadingAliasOf(index), _meta: { ...meta, lineage } };
  await retry((signal) => client.indices.putMapping(body, { signal }), options);
}

type Counts = Record<ChangeKind, number>;

function sum({ added, removed, updated }: Counts): number {
  return added + removed + updated;
}

/** Writes the differences of two snapshots. @throws {NewChainError} if more than half of all names changed. */
async function writeChanges(
  { client, exportPool }: Context,
  served: Snapshot,
  created: NewIndex,
  changes: string,
  options: RecordOptions,
): Promise<Counts> {
  const { index, meta } = created;
  const snapshot = snapshotIdOf(index);
  const limit = Math.max(served.meta.total, meta.total) / 2;
  const counts: Counts = { added: 0, removed: 0, updated: 0 };
  const { has_package_no: hasPackageNo } = meta;
  const hasVolatile = [served.meta, meta].some((one) => optionalFields(one).some(isVolatile));
  const documents = async function* () {
    const compared = compare(exportPool, served.index, index, { ...options, hasPackageNo, hasVolatile });
    for await (const differences of compared) {
      for (const difference of differences) counts[kindOf(difference)]++;
      if (sum(counts) > limit) throw new NewChainError('more than half of all names changed');
      yield differences.map((difference) => changeDocument({ snapshot, ...difference }, meta.taken_at));
    }
  };
  const { signal, log, stallMs } = options;
  await load(client, changes, documents(), { signal, log, stallMs, inFlight: 1 });
  return counts;
}
