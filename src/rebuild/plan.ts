import { DEFAULT_SLUG, type Config } from '../config/config.js';
import type { KnownInputs } from '../lists/download.js';
import type { FoundIndex } from '../snapshot/snapshot.js';
import { isSameInput } from './built-from.js';

/** Everything that decides whether a snapshot is built. */
export interface Facts {
  config: Pick<Config, 'dataset' | 'weights' | 'registry' | 'indexReplicas' | 'rebuild'>;
  /** Accept a snapshot that has lost many packages or weights. */
  force: boolean;
  /** Build nothing if the result would equal the newest snapshot (`unchanged`), or if an index is served (`served`). */
  skipIf?: 'unchanged' | 'served' | undefined;
  /** The served index and that of the previous snapshot, if they exist. */
  served: FoundIndex | undefined;
  previous: FoundIndex | undefined;
  /** Undefined before the download. */
  documents?: Documents;
}

interface Documents {
  /** Number of packages. */
  total: number;
  /** Of `had` names with a weight in the served snapshot, `have` names have one now. Undefined without `WEIGHTS_URL`. */
  weights: { had: number; have: number } | undefined;
}

/**
 * `build`: with `known`, nothing is built from documents that are equal to these. `skip`: an index is served already.
 * `refuse`: what is served must not be replaced by this.
 */
export type Plan =
  | { action: 'build'; known: KnownInputs | undefined }
  | { action: 'skip' }
  | { action: 'refuse'; reason: string };

/**
 * Error message if a rebuild would load the bundled sample into a registry other than `DEFAULT_SLUG`, or replace a real
 * dataset by the sample.
 */
export const NO_DATASET =
  'DATASET_URL is not set: set it to the dataset of this registry; without it, only the bundled sample is rebuilt';

/** Decides before the download, and again once the documents are read. */
export function plan(facts: Facts): Plan {
  const { config, force, skipIf, served, previous, documents } = facts;
  if (skipIf === 'served' && served !== undefined) return { action: 'skip' };
  const reason =
    sampleFault(facts) ??
    blockFault('served', served) ??
    blockFault('previous', previous) ??
    (documents === undefined || force ? undefined : lossFault(facts, documents));
  if (reason !== undefined) return { action: 'refuse', reason };
  // After a rollback, `previous` is the newest snapshot. Its unchanged dataset must not be built again.
  const newest = (previous?.createdAt ?? 0) > (served?.createdAt ?? 0) ? previous : served;
  const meta = newest?.meta;
  if (skipIf !== 'unchanged' || meta === undefined || !isSameInput(config, meta))
    return { action: 'build', known: undefined };
  const { weights_digest: digest, weights_validators: validators } = meta;
  const weights = digest === undefined ? undefined : { digest, validators };
  return {
    action: 'build',
    known: { digest: meta.packages_digest, validators: meta.dataset_validators, weights },
  };
}

function sampleFault({ config, served, previous }: Facts): string | undefined {
  const existing = served ?? previous;
  const isAllowed =
    config.registry.slug === DEFAULT_SLUG && (existing === undefined || existing.meta?.is_sample === true);
  return config.dataset.isSample && !isAllowed ? NO_DATASET : undefined;
}

/** A setting of the index that would keep the flip from moving its alias. */
function blockFault(which: string, found: FoundIndex | undefined): string | undefined {
  return found?.block && `the ${which} index has the block index.blocks.${found.block}: remove it`;
}

function lossFault({ config, served }: Facts, { total, weights }: Documents): string | undefined {
  const { maxShrinkPercent: maxPercent } = config.rebuild;
  const before = served?.meta?.total ?? 0;
  if (total * 100 < before * (100 - maxPercent)) {
    return (
      `the snapshot has ${total} packages, the previous one ${before}: smaller by more than ${maxPercent} %` +
      ' (REBUILD_MAX_SHRINK_PERCENT); accept it with force=true or --force'
    );
  }
  if (weights === undefined || weights.have * 2 >= weights.had) return undefined;
  return (
    `WEIGHTS_URL: of ${weights.had} names that had a weight, ${weights.have} have one now: fewer than half;` +
    ' accept it with force=true or --force'
  );
}
