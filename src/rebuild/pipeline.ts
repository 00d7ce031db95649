import { DEFAULT_SLUG } from '../config/config.js';
import { findIndex, type FoundIndex } from '../snapshot/snapshot.js';
import {
  assertReadable,
  MAPPING_VERSION,
  optionalMeta,
  type SnapshotMeta,
} from '../snapshot/snapshot-meta.js';
import { builtFrom, isSameInput } from './built-from.js';
import { leftovers, obsolete } from './steps/obsolete-indices.js';
import { flip } from './steps/flip.js';
import { discardIndex, listIndices, prune } from './steps/prune.js';
import { checkPackages, type CheckedPackages } from '../lists/checked-packages.js';
import { BadRows, DatasetError } from '../lists/fetch/dataset-error.js';
import { downloadInputs, type KnownInputs } from '../lists/download.js';
import { createIndex } from './steps/create.js';
import { waitForReplicas } from './steps/replicate.js';
import { isSnapshotOf, newIndexName, previousAliasOf, SCHEMA_VERSION } from '../snapshot/index-names.js';
import { bulkLoad } from './steps/load.js';
import { merge } from './steps/merge.js';
import type { Built } from './process/outcome.js';
import type { Progress } from './process/progress.js';
import type { RebuildContext } from './rebuild-context.js';
import { recordChanges } from './steps/record-changes.js';
import { verify } from './steps/verify.js';
import { assertNotShrunk, assertWeightsKept } from './steps/losses.js';

/**
 * Error message if a rebuild would load the bundled sample into a registry other than `DEFAULT_SLUG`, or replace a real
 * dataset by the sample.
 */
export const NO_DATASET =
  'DATASET_URL is not set: set it to the dataset of this registry; without it, only the bundled sample is rebuilt';

export interface RebuildOptions {
  /** Accept a snapshot that has lost many packages or weights. */
  force: boolean;
  /** Build nothing if the result would equal the newest snapshot (`unchanged`), or if an index is served (`served`). */
  skipIf?: 'unchanged' | 'served' | undefined;
  progress: Progress;
  /** Stops the rebuild before the flip. */
  signal: AbortSignal;
  /**
   * Called with the name of the index before the index is created. The server can then delete the index if this process
   * is killed.
   */
  onIndex?: (index: string) => void;
}

/**
 * Builds a new snapshot from the dataset and serves it. After a failure before the flip, the old snapshot stays in
 * service, and the new index is deleted.
 */
export async function rebuild(context: RebuildContext, options: RebuildOptions): Promise<Built> {
  const { client, exportPool, alias, config, log } = context;
  const { progress, signal } = options;
  const { changesRetention: retention } = config;

  progress.enter('downloading');
  const served = await findIndex(client, alias, { signal });
  if (options.skipIf === 'served' && served !== undefined) return { index: undefined };
  if (config.dataset.isSample && config.registry.slug !== DEFAULT_SLUG) throw new DatasetError(NO_DATASET);
  const previous = await findIndex(client, previousAliasOf(alias), { signal });
  assertMovable('served', served);
  assertMovable('previous', previous);
  // The list is read right after the lock was acquired. Otherwise, it could contain indices that another process
  // created after this process had lost the lock.
  const indices = await listIndices(client, alias, signal);
  // After a rollback, `previous` is the newest snapshot. Its unchanged dataset must not be built again.
  const newest = (previous?.createdAt ?? 0) > (served?.createdAt ?? 0) ? previous : served;
  const badRows = new BadRows(config.dataset.maxBadRows, log);
  const inputs = await downloadInputs(config, signal, {
    badRows,
    known: knownOf(context, options, newest),
    onBytes: (bytes) => progress.change({ bytes }),
  });
  if (inputs === undefined) {
    // Without Redis, there is no lock: another process may be loading one of these indices.
    if (served !== undefined && config.redisUrl !== undefined) {
      const notNeeded = obsolete(alias, indices.keys(), { snapshots: [served, previous], retention });
      const found = leftovers(notNeeded, indices, served.id);
      await prune(client, alias, found, { served: served.index, signal, log });
    }
    return { index: undefined };
  }
  const { dataset: downloaded, weights: downloadedWeights } = inputs;
  const { packages } = downloaded;
  try {
    const { isSample } = config.dataset;
    const existing = served ?? previous;
    if (isSample && existing !== undefined && existing.meta?.is_sample !== true)
      throw new DatasetError(NO_DATASET);

    progress.enter('checking');
    const weights = downloadedWeights?.weights;
    const dataset = await checkPackages(packages, { badRows, weights, signal });
    progress.change({ rows: dataset.total });
    if (weights !== undefined) log.info(weights.counts, 'the weights were read');
    const warning = weights?.warning;
    if (warning !== undefined) log.warn(warning);
    if (!options.force) {
      assertNotShrunk(dataset.total, served?.meta?.total, config.rebuild.maxShrinkPercent);
      if (weights !== undefined) await assertWeightsKept(exportPool, served, weights, { signal, log });
    }
    const meta: SnapshotMeta = {
      schema_version: SCHEMA_VERSION,
      total: dataset.total,
      source: config.registry.source ?? dataset.urlHost,
      taken_at: downloaded.takenAt.toISOString(),
      packages_digest: downloaded.digest,
      dataset_validators: downloaded.validators,
      weights_digest: downloadedWeights?.digest,
      weights_validators: downloadedWeights?.validators,
      mapping_version: MAPPING_VERSION,
      built_from: builtFrom(config),
      has_package_no: packages.check.isNumbered,
      ...optionalMeta([...packages.check.optionalFields, ...(weights === undefined ? [] : ['weight'])]),
      name_rule: config.dataset.nameRule,
      is_sample: isSample,
    };
    assertReadable(meta);

    const index = newIndexName(alias, new Date());
    options.onIndex?.(index);
    try {
      await buildAndServe(context, options, { index, dataset, meta, served, previous });
    } catch (error) {
      await discardIndex(client, alias, index, log);
      throw error;
    }

    progress.enter('pruning');
    // If an operator had moved the alias to an index that no rebuild created, the flip kept the previous snapshot.
    const kept = served !== undefined && isSnapshotOf(alias, served.index) ? served : previous;
    const old = obsolete(alias, indices.keys(), { snapshots: [kept], retention });
    await prune(client, alias, old, { served: index, signal, log });
    return { index, skipped: badRows.skipped, warning };
  } finally {
    await packages.close();
  }
}

interface Input {
  index: string;
  dataset: CheckedPackages;
  meta: SnapshotMeta;
  /** The served index and the index of the previous snapshot, before the flip. */
  served: FoundIndex | undefined;
  previous: FoundIndex | undefined;
}

async function buildAndServe(context: RebuildContext, options: RebuildOptions, input: Input): Promise<void> {
  const { client, pool, alias, config, log } = context;
  const { changesRetention: retention } = config;
  const { progress, signal } = options;
  const { index, dataset, meta, served, previous } = input;
  const { indexReplicas: replicas } = config;
  const step = {
    signal,
    log,
    onRows: (rows: number) => progress.change({ rows }),
    onBytes: (bytes: number, totalBytes: number) => progress.change({ bytes, totalBytes }),
  };

  progress.enter('creating');
  await createIndex(client, 'packages', { index, meta }, step);
  progress.enter('loading', dataset.total);
  await bulkLoad(client, index, dataset, { throttled: served !== undefined, ...step });
  progress.enter('merging');
  await merge(client, index, dataset.total, step);
  progress.enter('verifying');
  await verify(client, pool, { index, meta }, step);
  progress.enter('comparing', dataset.total);
  const created = { index, replicas, meta };
  const changes =
    retention === 0 ? undefined : await recordChanges(context, served, created, { ...step, retention });
  progress.enter('replicating');
  await waitForReplicas(client, index, replicas, step);
  signal.throwIfAborted();
  progress.enter('flipping');
  await flip(client, alias, { from: served?.index, previous: previous?.index, to: index, changes }, step);
}

/**
 * Digests and validators of the newest snapshot's documents. Undefined if an index must be built even from unchanged
 * documents.
 */
function knownOf(
  { config }: RebuildContext,
  { skipIf }: RebuildOptions,
  newest: FoundIndex | undefined,
): KnownInputs | undefined {
  const meta = newest?.meta;
  if (skipIf !== 'unchanged' || meta === undefined || !isSameInput(config, meta)) return undefined;
  const dataset = { digest: meta.packages_digest, validators: meta.dataset_validators };
  const { weights_digest: digest, weights_validators: validators } = meta;
  const weights = digest === undefined ? undefined : { digest, validators };
  return { ...dataset, weights };
}

/** @throws {Error} if a setting of the index would keep the flip from moving its alias. */
function assertMovable(which: string, found: FoundIndex | undefined): void {
  if (found?.block === undefined) return;
  throw new Error(`the ${which} index has the block index.blocks.${found.block}: remove it`);
}
