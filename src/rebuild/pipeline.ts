import { checkPackages, type CheckedPackages } from '../lists/checked-packages.js';
import { BadRows, type SkippedRows } from '../lists/fetch/dataset-error.js';
import { downloadInputs, type Inputs, type KnownInputs } from '../lists/download.js';
import { clean, findExisting, publish, type Existing, type NewSnapshot } from '../publish/publish.js';
import { SCHEMA_VERSION } from '../snapshot/index-names.js';
import { packageDocument, type PackageEntry } from '../snapshot/package-document.js';
import { MAPPING_VERSION, optionalMeta, type SnapshotMeta } from '../snapshot/snapshot-meta.js';
import { builtFrom } from './built-from.js';
import { countKeptWeights } from './kept-weights.js';
import { plan, type Facts, type Plan } from './plan.js';
import type { Progress } from './progress.js';
import type { RebuildContext } from './rebuild-context.js';

export interface RebuildOptions extends Pick<Facts, 'force' | 'skipIf'> {
  progress: Progress;
  /** Stops the rebuild before the flip. */
  signal: AbortSignal;
  /** Renews the lock. Aborts `signal` if another process has taken it. */
  renew: () => Promise<void>;
}

/** What a rebuild serves. */
export interface Built {
  index: string;
  packages: number;
  skipped?: SkippedRows | undefined;
  /** Warns the operator that no package has a name from `WEIGHTS_URL`. */
  warning?: string | undefined;
}

/** A list that may be published. The caller must close it. */
interface Staged extends Omit<Built, 'index'>, NewSnapshot {
  close: () => Promise<void>;
}

/**
 * Builds a new snapshot from the dataset and serves it. The caller must hold the lock. After a failure before the flip,
 * the old snapshot stays in service, and the new index is deleted.
 * @returns undefined if there was nothing to build.
 */
export async function rebuild(context: RebuildContext, options: RebuildOptions): Promise<Built | undefined> {
  const { progress, signal, renew } = options;
  const { changesRetention: retention, indexReplicas: replicas } = context.config;
  const publishOptions = { signal, progress, replicas, retention };
  progress.enter('downloading');
  const existing = await findExisting(context, signal);
  await renew();
  const planned = decide({ ...existing, ...options, config: context.config });
  if (planned.action === 'skip') return undefined;
  // Killed rebuilds may have left indices. They are deleted now, so that repeated kills cannot fill the disk.
  await clean(context, existing, existing.served?.index, publishOptions);
  const staged = await stage(context, options, existing, planned.known);
  if (staged === undefined) return undefined;
  try {
    const index = await publish(context, existing, staged, publishOptions);
    progress.enter('pruning');
    await clean(context, existing, index, publishOptions);
    const { packages, skipped, warning } = staged;
    return { index, packages, skipped, warning };
  } finally {
    await staged.close();
  }
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
    return {
      meta: metaOf(context, dataset, inputs),
      documents: documentsOf(dataset),
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

async function* documentsOf({ read, ordinalOf }: CheckedPackages) {
  for await (const entries of read()) yield documentsOfBatch(entries, ordinalOf);
}

/** Yields one by one: the documents of a whole batch would cost a fifth of the processor time, to collect them. */
function* documentsOfBatch(entries: PackageEntry[], ordinalOf: CheckedPackages['ordinalOf']) {
  for (const entry of entries) yield packageDocument(entry, ordinalOf(entry.no));
}
