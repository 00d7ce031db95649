import { findIndex } from '../snapshot/snapshot.js';
import {
  assertReadable,
  MAPPING_VERSION,
  optionalMeta,
  type SnapshotMeta,
} from '../snapshot/snapshot-meta.js';
import { builtFrom } from './built-from.js';
import { obsolete } from '../publish/obsolete-indices.js';
import { flip } from '../publish/flip.js';
import { discardIndex, listIndices, prune } from '../publish/prune.js';
import { checkPackages, type CheckedPackages } from '../lists/checked-packages.js';
import { BadRows, type SkippedRows } from '../lists/fetch/dataset-error.js';
import { downloadInputs, type Inputs, type KnownInputs } from '../lists/download.js';
import { createIndex } from '../publish/create.js';
import { waitForReplicas } from '../publish/replicate.js';
import { isSnapshotOf, newIndexName, previousAliasOf, SCHEMA_VERSION } from '../snapshot/index-names.js';
import { bulkLoad } from '../publish/load.js';
import { countKeptWeights } from './kept-weights.js';
import { merge } from '../publish/merge.js';
import { plan, type Facts, type Plan } from './plan.js';
import type { Progress } from './progress.js';
import type { RebuildContext } from './rebuild-context.js';
import { recordChanges } from '../publish/record-changes.js';
import { verify } from '../publish/verify.js';

export interface RebuildOptions extends Pick<Facts, 'force' | 'skipIf'> {
  progress: Progress;
  /** Stops the rebuild before the flip. */
  signal: AbortSignal;
}

/** What a rebuild serves. */
export interface Built {
  index: string;
  packages: number;
  skipped?: SkippedRows | undefined;
  /** Warns the operator that no package has a name from `WEIGHTS_URL`. */
  warning?: string | undefined;
}

/** What a registry has in Elasticsearch when a rebuild begins. */
interface Existing extends Pick<Facts, 'served' | 'previous'> {
  /** All snapshots and changes. */
  indices: string[];
}

/** A list that may be published. The caller must close it. */
interface Staged extends Omit<Built, 'index'> {
  dataset: CheckedPackages;
  meta: SnapshotMeta;
  close: () => Promise<void>;
}

/**
 * Builds a new snapshot from the dataset and serves it. The caller must hold the lock. After a failure before the flip,
 * the old snapshot stays in service, and the new index is deleted.
 * @returns undefined if there was nothing to build.
 */
export async function rebuild(context: RebuildContext, options: RebuildOptions): Promise<Built | undefined> {
  const { progress } = options;
  progress.enter('downloading');
  const existing = await look(context, options);
  const planned = decide({ ...existing, ...options, config: context.config });
  if (planned.action === 'skip') return undefined;
  const staged = await stage(context, options, existing, planned.known);
  if (staged === undefined) {
    const { served } = existing;
    if (served !== undefined) await clean(context, options, existing, served.index);
    return undefined;
  }
  try {
    const index = await publish(context, options, existing, staged);
    progress.enter('pruning');
    await clean(context, options, existing, index);
    const { packages, skipped, warning } = staged;
    return { index, packages, skipped, warning };
  } finally {
    await staged.close();
  }
}

async function look({ client, alias }: RebuildContext, { signal }: RebuildOptions): Promise<Existing> {
  const served = await findIndex(client, alias, { signal });
  const previous = await findIndex(client, previousAliasOf(alias), { signal });
  // The list is read right after the lock was acquired. Otherwise, it could contain indices that another process
  // created after this process had lost the lock.
  return { served, previous, indices: await listIndices(client, alias, signal) };
}

/** @throws {Error} if what is served must not be replaced. */
function decide(facts: Facts): Exclude<Plan, { action: 'refuse' }> {
  const planned = plan(facts);
  if (planned.action === 'refuse') throw new Error(planned.reason);
  return planned;
}

/** Downloads and checks the documents. @returns undefined if they are known. @throws {Error} {DatasetError} */
async function stage(
  context: RebuildContext,
  { progress, signal, ...options }: RebuildOptions,
  { served, previous }: Existing,
  known: KnownInputs | undefined,
): Promise<Staged | undefined> {
  const { exportPool, config, log } = context;
  const badRows = new BadRows(config.dataset.maxBadRows, log);
  const inputs = await downloadInputs(config, signal, {
    badRows,
    known,
    onBytes: (bytes) => progress.change({ bytes }),
  });
  if (inputs === undefined) return undefined;
  const { packages } = inputs.dataset;
  try {
    progress.enter('checking');
    const weights = inputs.weights?.weights;
    const dataset = await checkPackages(packages, { badRows, weights, signal });
    const { total } = dataset;
    progress.change({ rows: total });
    if (weights !== undefined) log.info(weights.counts, 'the weights were read');
    const warning = weights?.warning;
    if (warning !== undefined) log.warn(warning);
    const kept =
      weights === undefined || options.force
        ? undefined
        : await countKeptWeights(exportPool, served, weights, { signal, log });
    decide({ config, ...options, served, previous, documents: { total, weights: kept } });
    const meta = metaOf(context, dataset, inputs);
    assertReadable(meta);
    return {
      dataset,
      meta,
      packages: total,
      skipped: badRows.skipped,
      warning,
      close: () => packages.close(),
    };
  } catch (error) {
    await packages.close();
    throw error;
  }
}

function metaOf({ config }: RebuildContext, dataset: CheckedPackages, inputs: Inputs): SnapshotMeta {
  const { dataset: downloaded, weights } = inputs;
  const { check } = downloaded.packages;
  return {
    schema_version: SCHEMA_VERSION,
    total: dataset.total,
    source: config.registry.source ?? dataset.urlHost,
    taken_at: downloaded.takenAt.toISOString(),
    packages_digest: downloaded.digest,
    dataset_validators: downloaded.validators,
    weights_digest: weights?.digest,
    weights_validators: weights?.validators,
    mapping_version: MAPPING_VERSION,
    built_from: builtFrom(config),
    has_package_no: check.isNumbered,
    ...optionalMeta([...check.optionalFields, ...(weights === undefined ? [] : ['weight'])]),
    name_rule: config.dataset.nameRule,
    is_sample: config.dataset.isSample,
  };
}

/** Builds an index and serves it. After a failure before the flip, deletes the index. @returns the index. */
async function publish(
  context: RebuildContext,
  options: RebuildOptions,
  existing: Existing,
  staged: Staged,
): Promise<string> {
  const { client, alias, log } = context;
  const index = newIndexName(alias, new Date());
  try {
    await buildAndServe(context, options, existing, { index, ...staged });
    return index;
  } catch (error) {
    await discardIndex(client, alias, index, log);
    throw error;
  }
}

async function buildAndServe(
  context: RebuildContext,
  { progress, signal }: RebuildOptions,
  { served, previous }: Existing,
  { index, dataset, meta }: Pick<Staged, 'dataset' | 'meta'> & { index: string },
): Promise<void> {
  const { client, pool, alias, config, log } = context;
  const { changesRetention: retention, indexReplicas: replicas } = config;
  const step = {
    signal,
    log,
    onRows: (rows: number) => progress.change({ rows }),
    onBytes: (bytes: number, total_bytes: number) => progress.change({ bytes, total_bytes }),
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

/** Deletes the indices that no alias and no chain needs, on condition that `current` is still served. */
async function clean(
  { client, alias, config, log }: RebuildContext,
  { signal }: RebuildOptions,
  { served, previous, indices }: Existing,
  current: string,
): Promise<void> {
  const { changesRetention: retention } = config;
  // If an operator had moved the alias to an index that no rebuild created, the flip kept the previous snapshot.
  const replaced = served !== undefined && isSnapshotOf(alias, served.index) ? served : previous;
  const snapshots = served?.index === current ? [served, previous] : [replaced];
  const old = obsolete(alias, indices, { snapshots, retention });
  await prune(client, alias, old, { served: current, signal, log });
}
