import type { Client } from '@elastic/elasticsearch';
import type { SearchPool } from '../clients/search-pool.js';
import type { Config } from '../config.js';
import { assertReadable, findGeneration, type GenerationMeta } from '../catalog/generation.js';
import type { Logger } from '../log.js';
import { checkDataset } from './check.js';
import { download } from './download.js';
import { createIndex, discard, flip, prune, seal, settle } from './indices.js';
import { newIndexName } from './index-names.js';
import { loadDataset } from './load.js';
import type { Progress } from './progress.js';
import { readRows } from './rows.js';
import { refuseShrunken, verify } from './verify.js';

export interface RebuildDeps {
  client: Client;
  /** For trying the new index as readers will. */
  pool: SearchPool;
  alias: string;
  config: Pick<Config, 'dataset' | 'index' | 'rebuild' | 'registry'>;
  log: Logger;
}

export interface RebuildOptions {
  /** Accept a snapshot that is much smaller than the one before. */
  force: boolean;
  /** When nothing is built after all: where the dataset is the one that is served already, or where anything is served. */
  unless?: 'unchanged' | 'served' | undefined;
  progress: Progress;
  /** Stops the build before the flip. */
  signal: AbortSignal;
}

/**
 * Builds a new generation from the dataset and lets the alias point to it. Whatever fails before that leaves the old
 * generation serving, and nothing of the new one behind.
 * @returns the new index, or undefined where there was nothing to build.
 */
export async function rebuild(deps: RebuildDeps, options: RebuildOptions): Promise<string | undefined> {
  const { client, pool, alias, config, log } = deps;
  const { progress, signal } = options;

  progress.enter('downloading');
  const previous = await findGeneration(client, alias);
  if (options.unless === 'served' && previous !== undefined) return undefined;
  const known = options.unless === 'unchanged' ? previous?.meta?.dataset_validators : undefined;
  const snapshot = await download(config.dataset.url, signal, { known });
  if (snapshot === undefined) return undefined;
  try {
    if (options.unless === 'unchanged' && snapshot.digest === previous?.meta?.dataset_digest)
      return undefined;
    const rows = async function* () {
      for await (const batch of readRows(await snapshot.read(), config.dataset.packageUrlTemplate)) {
        signal.throwIfAborted();
        yield batch;
      }
    };

    progress.enter('checking');
    const dataset = await checkDataset(rows, {
      maxBadRows: config.dataset.maxBadRows,
      log,
      onRows: (count) => progress.count(count),
    });
    if (!options.force) refuseShrunken(dataset.total, previous?.meta?.total, config.rebuild.maxShrinkPercent);
    const meta: GenerationMeta = {
      schema_version: 1,
      total: dataset.total,
      source: config.registry.source ?? dataset.urlHost,
      taken_at: snapshot.takenAt.toISOString(),
      dataset_digest: snapshot.digest,
      dataset_validators: snapshot.validators,
    };
    assertReadable(meta);

    const index = newIndexName(alias, new Date());
    try {
      progress.enter('creating');
      await createIndex(client, index, config.index.shards, meta);
      progress.enter('loading', dataset.total);
      await loadDataset(client, index, rows(), dataset, {
        besideReaders: previous !== undefined,
        signal,
        log,
        onRows: (count) => progress.count(count),
      });
      progress.enter('merging');
      await seal(client, index, signal);
      progress.enter('verifying');
      await verify(client, pool, { index, shards: config.index.shards, meta });
      progress.enter('replicating');
      await settle(client, index, config.index.replicas, signal);
      signal.throwIfAborted();
      progress.enter('flipping');
      await flip(client, alias, previous?.index, index);
    } catch (error) {
      // First what is here: Elasticsearch may not answer, and the process may not be given the time to wait.
      await snapshot.remove();
      await discard(client, alias, index).catch((cause: unknown) => {
        log.error({ index, err: cause }, 'the index of a failed build, if it was made, could not be removed');
      });
      throw error;
    }

    progress.enter('pruning');
    await prune(client, alias, [index, previous?.index]).catch((error: unknown) => {
      log.warn({ err: error }, 'old indices could not be removed; the next rebuild tries again');
    });
    return index;
  } finally {
    await snapshot.remove();
  }
}
