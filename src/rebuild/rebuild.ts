import { createHash } from 'node:crypto';
import type { Client } from '@elastic/elasticsearch';
import type { SearchPool } from '../clients/search-pool.js';
import { DEFAULT_SLUG, type Config } from '../config/config.js';
import {
  assertReadable,
  findGeneration,
  MAPPING_VERSION,
  type FoundGeneration,
  type GenerationMeta,
} from '../snapshot/generation.js';
import type { Logger } from '../log.js';
import { flip } from './steps/flip.js';
import { discardBuild, listIndices, prune } from './steps/prune.js';
import { validateDataset, type ValidatedDataset } from './steps/check.js';
import { DatasetError } from './dataset/dataset-error.js';
import type { Validators } from './dataset/origin.js';
import { download, type Snapshot } from './steps/download.js';
import { createIndex } from './steps/create.js';
import { waitForReplicas } from './steps/replicate.js';
import {
  changesIndexOf,
  isBuildOf,
  loadingAliasOf,
  newIndexName,
  previousAliasOf,
  snapshotIdOf,
} from '../snapshot/index-names.js';
import { bulkLoad } from './steps/load.js';
import { seal } from './steps/merge.js';
import type { Built } from './process/outcome.js';
import type { Progress } from './process/progress.js';
import { recordChanges } from './steps/record-changes.js';
import { NUMBER_COLUMN, readRows, type Row } from './dataset/rows.js';
import { assertNotShrunk, verify } from './steps/verify.js';

export interface RebuildDeps {
  client: Client;
  /** For querying the new index as readers will. */
  pool: SearchPool;
  /** For reading whole generations. */
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
  /** Build nothing if the dataset is that of the newest build (`unchanged`), or if anything is `served`. */
  skipIf?: 'unchanged' | 'served' | undefined;
  progress: Progress;
  /** Stops the build before the flip. */
  signal: AbortSignal;
  /** The latest validators of a dataset that was downloaded in vain: its bytes had not changed. */
  seen?: SeenDataset | undefined;
  /** Called with those of this download. */
  onSeen?: (seen: SeenDataset) => void;
  /** Called before the index is created, so that it can be removed if this process is killed. */
  onIndex?: (index: string) => void;
}

/**
 * Builds a new generation from the dataset and serves it. After a failure before the flip, the old generation
 * stays in service and nothing of the new one is left.
 */
export async function rebuild(deps: RebuildDeps, options: RebuildOptions): Promise<Built> {
  const { client, alias, config, log } = deps;
  const { progress, signal } = options;

  progress.enter('downloading');
  const served = await findGeneration(client, alias, { signal });
  if (options.skipIf === 'served' && served !== undefined) return { index: undefined };
  if (config.dataset.isSample && config.registry.slug !== DEFAULT_SLUG) throw new DatasetError(NO_DATASET);
  const previous = await findGeneration(client, previousAliasOf(alias), { signal });
  assertMovable('served', served);
  assertMovable('previous', previous);
  // Listed right after the lock is acquired: if this process is suspended and loses the lock, the list holds none of the indices
  // that others create later.
  const indices = await listIndices(client, alias, signal);
  // After a rollback, the newest build is the previous one, whose dataset is not built again.
  const newest = (previous?.createdAt ?? 0) > (served?.createdAt ?? 0) ? previous : served;
  const snapshot = await downloadIfChanged(deps, options, newest);
  if (snapshot === undefined) {
    // Without Redis, another process may be loading one of them.
    if (served !== undefined && config.redisUrl !== undefined) {
      await pruneOrWarn(deps, leftovers(deps, indices, served, previous), served.index, signal);
    }
    return { index: undefined };
  }
  try {
    const { isSample } = config.dataset;
    const existing = served ?? previous;
    if (isSample && existing !== undefined && !isOfSample(existing, snapshot))
      throw new DatasetError(NO_DATASET);
    let hasPackageNo = false;
    const onHeader = (columns: readonly string[]) => (hasPackageNo = columns.includes(NUMBER_COLUMN));
    const { packageUrlTemplate } = config.dataset;
    const rows = () => untilAborted(readRows(snapshot.read(), packageUrlTemplate, onHeader), signal);

    progress.enter('checking');
    const onRows = (count: number) => progress.count(count);
    const dataset = await validateDataset(rows, { maxBadRows: config.dataset.maxBadRows, log, onRows });
    if (!options.force) assertNotShrunk(dataset.total, served?.meta?.total, config.rebuild.maxShrinkPercent);
    const meta: GenerationMeta = {
      schema_version: 1,
      total: dataset.total,
      source: config.registry.source ?? dataset.urlHost,
      taken_at: snapshot.takenAt.toISOString(),
      dataset_digest: snapshot.digest,
      dataset_validators: snapshot.validators,
      mapping_version: MAPPING_VERSION,
      built_with: builtWith(config),
      has_package_no: hasPackageNo,
      is_sample: isSample,
    };
    assertReadable(meta);

    const index = newIndexName(alias, new Date());
    options.onIndex?.(index);
    try {
      await buildAndServe(deps, options, { index, rows: rows(), dataset, meta, served, previous });
    } catch (error) {
      await discardBuild(client, alias, index).catch((cause: unknown) => {
        log.error(
          { index, err: cause },
          'the index of the failed build, if it exists, could not be deleted; the next rebuild tries again',
        );
      });
      throw error;
    }

    progress.enter('pruning');
    // An operator may have moved the alias to another index, which does not become the previous generation.
    const kept = served !== undefined && isBuildOf(alias, served.index) ? served : previous;
    await pruneOrWarn(deps, obsolete(deps, indices, [kept]), index, signal);
    return { index, skipped: dataset.skipped };
  } finally {
    await snapshot.close();
  }
}

async function pruneOrWarn(
  { client, alias, log }: RebuildDeps,
  indices: string[],
  served: string,
  signal: AbortSignal,
): Promise<void> {
  await prune(client, alias, indices, { served, signal, log }).catch((error: unknown) => {
    log.warn({ err: error }, 'old indices could not be removed; the next rebuild tries again');
  });
}

interface BuildInput {
  /** Name of the new index. */
  index: string;
  rows: AsyncIterable<Row[]>;
  dataset: ValidatedDataset;
  meta: GenerationMeta;
  /** The generation served until the flip, and the one before it. */
  served: FoundGeneration | undefined;
  previous: FoundGeneration | undefined;
}

/** Creates an index, loads it, and flips the alias to it. */
async function buildAndServe(deps: RebuildDeps, options: RebuildOptions, input: BuildInput): Promise<void> {
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
  await seal(client, index, dataset.total, step);
  progress.enter('verifying');
  await verify(client, pool, { index, shards, meta }, step);
  progress.enter('comparing', dataset.total);
  const build = { index, shards, replicas, meta };
  const changes =
    retention === 0 ? undefined : await recordChanges(deps, served, build, { ...step, retention });
  progress.enter('replicating');
  await waitForReplicas(client, { index, shards }, replicas, step);
  signal.throwIfAborted();
  progress.enter('flipping');
  await flip(client, alias, { from: served?.index, previous: previous?.index, build: index, changes }, step);
}

/** @returns undefined if `skipIf` is `unchanged`, and the newest build is what a rebuild would build. */
async function downloadIfChanged(
  { config }: RebuildDeps,
  { skipIf, seen, onSeen, signal }: RebuildOptions,
  newest: FoundGeneration | undefined,
): Promise<Snapshot | undefined> {
  const isSameBuild = skipIf === 'unchanged' && newest?.meta?.built_with === builtWith(config);
  const { dataset_validators: known, dataset_digest: digest } = (isSameBuild ? newest.meta : undefined) ?? {};
  const snapshot = await download(config.dataset.url, signal, {
    timeoutMs: config.dataset.downloadTimeoutSeconds * 1000,
    known: seen?.digest === digest ? seen?.validators : known,
  });
  if (snapshot === undefined || snapshot.digest !== digest) return snapshot;
  const { validators } = snapshot;
  onSeen?.({ digest, validators });
  await snapshot.close();
  return undefined;
}

/** Whether a generation was built from the bundled sample. Earlier releases did not record it. */
function isOfSample({ meta }: FoundGeneration, { digest }: Snapshot): boolean {
  return meta?.is_sample === true || meta?.dataset_digest === digest;
}

/** Everything but the dataset that a build depends on, as SHA-256. */
function builtWith({ dataset, index, registry }: RebuildDeps['config']): string {
  const { packageUrlTemplate, maxBadRows } = dataset;
  const parts = [MAPPING_VERSION, packageUrlTemplate, maxBadRows, registry.source, index];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  for await (const item of source) {
    signal.throwIfAborted();
    yield item;
  }
}

/** @throws {Error} if a setting of the index would keep the flip from moving its alias. */
function assertMovable(which: string, found: FoundGeneration | undefined): void {
  if (found?.block === undefined) return;
  throw new Error(`the ${which} index has the block index.blocks.${found.block}: remove it`);
}

/** What killed processes have left: builds that were never served, and those that were not pruned. */
function leftovers(
  deps: RebuildDeps,
  indices: ReadonlyMap<string, string[]>,
  served: FoundGeneration,
  previous: FoundGeneration | undefined,
): string[] {
  return obsolete(deps, indices, [served, previous]).filter(
    (index) =>
      indices.get(index)?.includes(loadingAliasOf(index)) === true ||
      // An operator may have moved the alias away from a newer one, and may want it back.
      snapshotIdOf(index) < served.snapshot,
  );
}

/** Of these indices, those that neither the generations that are kept nor a rollback to them need. */
function obsolete(
  { alias, config }: RebuildDeps,
  indices: ReadonlyMap<string, string[]>,
  kept: readonly (FoundGeneration | undefined)[],
): string[] {
  const generations = kept.filter((one) => one !== undefined);
  const needed = new Set(
    generations.flatMap((one) => [one.index, ...changesNeeded(alias, one, config.changesRetention)]),
  );
  return [...indices.keys()].filter((index) => !needed.has(index));
}

/** The indices of changes that lead to a generation. */
function changesNeeded(alias: string, { snapshot, meta }: FoundGeneration, retention: number): string[] {
  if (retention === 0) return [];
  // A full chain begins at its last ancestor: the changes that led to that one are not needed.
  const ancestors = meta?.lineage?.ancestors.slice(0, retention - 1) ?? [];
  return [snapshot, ...ancestors].map((id) => changesIndexOf(alias, id));
}
