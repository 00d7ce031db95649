import type { Client } from '@elastic/elasticsearch';
import type { SearchPool } from '../clients/search-pool.js';
import { DEFAULT_SLUG, type Config } from '../config/config.js';
import {
  assertReadable,
  findIndex,
  MAPPING_VERSION,
  type FoundIndex,
  type SnapshotMeta,
} from '../snapshot/snapshot.js';
import type { Logger } from '../log.js';
import { builtFrom, isSameInput } from './built-from.js';
import { leftovers, obsolete } from './obsolete-indices.js';
import { flip } from './steps/flip.js';
import { discardIndex, listIndices, prune } from './steps/prune.js';
import { validateDataset, type ValidatedDataset } from './steps/check.js';
import { DatasetError } from './dataset/dataset-error.js';
import type { Validators } from './dataset/origin.js';
import { downloadDataset, type DownloadedDataset } from './steps/download.js';
import { createIndex } from './steps/create.js';
import { waitForReplicas } from './steps/replicate.js';
import { isSnapshotOf, newIndexName, previousAliasOf } from '../snapshot/index-names.js';
import { bulkLoad } from './steps/load.js';
import { merge } from './steps/merge.js';
import type { Built } from './process/outcome.js';
import type { Progress } from './process/progress.js';
import { recordChanges } from './steps/record-changes.js';
import { NUMBER_COLUMN, readRows, WEIGHT_COLUMN, type Row } from './dataset/rows.js';
import { untilAborted } from './dataset/transfer-limits.js';
import { assertNotShrunk, verify } from './steps/verify.js';

export interface RebuildDeps {
  client: Client;
  /** For querying the new index as readers will. */
  pool: SearchPool;
  /** For reading whole snapshots. */
  exportPool: SearchPool;
  alias: string;
  config: Pick<Config, 'changesRetention' | 'dataset' | 'index' | 'rebuild' | 'redisUrl' | 'registry'>;
  log: Logger;
}

/** Otherwise the bundled sample would replace the packages of a registry. */
export const NO_DATASET =
  'DATASET_URL is not set: set it to the dataset of this registry; without it, only the bundled sample is rebuilt';

/** What a dataset's server said of a dataset. */
export interface SeenDataset {
  /** SHA-256 in hexadecimal. */
  digest: string;
  validators?: Validators | undefined;
}

export interface RebuildOptions {
  /** Accept a snapshot that is much smaller than the previous one. */
  force: boolean;
  /** Build nothing if the dataset is that of the newest snapshot (`unchanged`), or if anything is `served`. */
  skipIf?: 'unchanged' | 'served' | undefined;
  progress: Progress;
  /** Stops the rebuild before the flip. */
  signal: AbortSignal;
  /** The latest validators of a dataset that was downloaded in vain: its bytes had not changed. */
  seen?: SeenDataset | undefined;
  /** Called with those of this download. */
  onSeen?: (seen: SeenDataset) => void;
  /** Called before the index is created, so that it can be removed if this process is killed. */
  onIndex?: (index: string) => void;
}

/**
 * Builds a new snapshot from the dataset and serves it. After a failure before the flip, the old snapshot
 * stays in service and nothing of the new one is left.
 */
export async function rebuild(deps: RebuildDeps, options: RebuildOptions): Promise<Built> {
  const { client, alias, config, log } = deps;
  const { progress, signal } = options;
  const { changesRetention: retention } = config;

  progress.enter('downloading');
  const served = await findIndex(client, alias, { signal });
  if (options.skipIf === 'served' && served !== undefined) return { index: undefined };
  if (config.dataset.isSample && config.registry.slug !== DEFAULT_SLUG) throw new DatasetError(NO_DATASET);
  const previous = await findIndex(client, previousAliasOf(alias), { signal });
  assertMovable('served', served);
  assertMovable('previous', previous);
  // Listed right after the lock is acquired: if this process is suspended and loses the lock, the list holds none of the indices
  // that others create later.
  const indices = await listIndices(client, alias, signal);
  // After a rollback, the newest snapshot is the previous one, whose dataset is not built again.
  const newest = (previous?.createdAt ?? 0) > (served?.createdAt ?? 0) ? previous : served;
  const downloaded = await downloadIfChanged(deps, options, newest);
  if (downloaded === undefined) {
    // Without Redis, another process may be loading one of them.
    if (served !== undefined && config.redisUrl !== undefined) {
      const notNeeded = obsolete(alias, indices.keys(), { snapshots: [served, previous], retention });
      const found = leftovers(notNeeded, indices, served.id);
      await prune(client, alias, found, { served: served.index, signal, log });
    }
    return { index: undefined };
  }
  try {
    const { isSample } = config.dataset;
    const existing = served ?? previous;
    if (isSample && existing !== undefined && !isOfSample(existing, downloaded))
      throw new DatasetError(NO_DATASET);
    let columns: readonly string[] = [];
    const onHeader = (header: readonly string[]) => (columns = header);
    const { packageUrlTemplate } = config.dataset;
    const rows = () => untilAborted(readRows(downloaded.read(), packageUrlTemplate, onHeader), signal);

    progress.enter('checking');
    const onRows = (count: number) => progress.count(count);
    const { maxBadRows, format } = config.dataset;
    const dataset = await validateDataset(rows, { format, maxBadRows, log, onRows });
    if (!options.force) assertNotShrunk(dataset.total, served?.meta?.total, config.rebuild.maxShrinkPercent);
    const meta: SnapshotMeta = {
      schema_version: 1,
      total: dataset.total,
      source: config.registry.source ?? dataset.urlHost,
      taken_at: downloaded.takenAt.toISOString(),
      dataset_digest: downloaded.digest,
      dataset_validators: downloaded.validators,
      mapping_version: MAPPING_VERSION,
      built_from: builtFrom(config),
      has_package_no: columns.includes(NUMBER_COLUMN),
      has_weights: columns.includes(WEIGHT_COLUMN),
      is_sample: isSample,
    };
    assertReadable(meta);

    const index = newIndexName(alias, new Date());
    options.onIndex?.(index);
    try {
      await buildAndServe(deps, options, { index, rows: rows(), dataset, meta, served, previous });
    } catch (error) {
      await discardIndex(client, alias, index, log);
      throw error;
    }

    progress.enter('pruning');
    // An operator may have moved the alias to another index, which does not become the previous snapshot.
    const kept = served !== undefined && isSnapshotOf(alias, served.index) ? served : previous;
    const old = obsolete(alias, indices.keys(), { snapshots: [kept], retention });
    await prune(client, alias, old, { served: index, signal, log });
    return { index, skipped: dataset.skipped };
  } finally {
    await downloaded.close();
  }
}

interface IndexInput {
  /** Name of the new index. */
  index: string;
  rows: AsyncIterable<Row[]>;
  dataset: ValidatedDataset;
  meta: SnapshotMeta;
  /** The snapshot served until the flip, and the one before it. */
  served: FoundIndex | undefined;
  previous: FoundIndex | undefined;
}

/** Creates an index, loads it, and flips the alias to it. */
async function buildAndServe(deps: RebuildDeps, options: RebuildOptions, input: IndexInput): Promise<void> {
  const { client, pool, alias, config, log } = deps;
  const { changesRetention: retention } = config;
  const { progress, signal } = options;
  const { index, rows, dataset, meta, served, previous } = input;
  const { shards, replicas } = config.index;
  const step = {
    signal,
    log,
    onRows: (rows: number) => progress.count(rows),
    onBytes: (done: number, total: number) => progress.countBytes(done, total),
  };

  progress.enter('creating');
  await createIndex(client, 'packages', { index, shards, meta }, step);
  progress.enter('loading', dataset.total);
  await bulkLoad(client, index, rows, dataset, { throttled: served !== undefined, ...step });
  progress.enter('merging');
  await merge(client, index, dataset.total, step);
  progress.enter('verifying');
  await verify(client, pool, { index, shards, meta }, step);
  progress.enter('comparing', dataset.total);
  const created = { index, shards, replicas, meta };
  const changes =
    retention === 0 ? undefined : await recordChanges(deps, served, created, { ...step, retention });
  progress.enter('replicating');
  await waitForReplicas(client, { index, shards }, replicas, step);
  signal.throwIfAborted();
  progress.enter('flipping');
  await flip(client, alias, { from: served?.index, previous: previous?.index, to: index, changes }, step);
}

/** @returns undefined if `skipIf` is `unchanged`, and a rebuild would build the newest snapshot again. */
async function downloadIfChanged(
  { config }: RebuildDeps,
  { skipIf, seen, onSeen, progress, signal }: RebuildOptions,
  newest: FoundIndex | undefined,
): Promise<DownloadedDataset | undefined> {
  const meta = newest?.meta;
  const isUnchanged = skipIf === 'unchanged' && meta !== undefined && isSameInput(config, meta);
  const { dataset_validators: known, dataset_digest: digest } = isUnchanged ? meta : {};
  const downloaded = await downloadDataset(config.dataset, signal, {
    known: seen?.digest === digest ? seen?.validators : known,
    onBytes: (bytes) => progress.countBytes(bytes),
  });
  if (downloaded === undefined || downloaded.digest !== digest) return downloaded;
  const { validators } = downloaded;
  onSeen?.({ digest, validators });
  await downloaded.close();
  return undefined;
}

/** Whether a snapshot was built from the bundled sample. Earlier releases did not record it. */
function isOfSample({ meta }: FoundIndex, { digest }: DownloadedDataset): boolean {
  return meta?.is_sample === true || meta?.dataset_digest === digest;
}

/** @throws {Error} if a setting of the index would keep the flip from moving its alias. */
function assertMovable(which: string, found: FoundIndex | undefined): void {
  if (found?.block === undefined) return;
  throw new Error(`the ${which} index has the block index.blocks.${found.block}: remove it`);
}
