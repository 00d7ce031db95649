import { writeResponseBody, type EntryGroup, type PackageEntry } from '../snapshot/package-document.js';
import type { SearchPool } from '../elasticsearch/search-pool.js';
import { unifySeparators } from '../util/name-rule.js';
import { codePoints } from '../util/unicode.js';
import { browsePage } from '../search/queries.js';
import { searchTierByTier } from '../search/tiered-search.js';
import type { SearchBody } from '../elasticsearch/msearch.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { retry, type RetryOptions } from './retry.js';

/** Number of sample packages that are searched for. It must be at least 2. */
const SAMPLES = 10;

/** Identifies these searches in Elasticsearch's tasks and slow logs. */
const OPAQUE_ID = 'verify';

/**
 * Checks that sample packages are found by ordinal and by name. A new index may be slow at first, so searches that time
 * out are retried.
 * @throws {Error} naming what is missing.
 */
export async function verify(
  pool: SearchPool,
  { index, meta }: Omit<Snapshot, 'id'>,
  options: RetryOptions,
): Promise<void> {
  const { total } = meta;
  const run = (bodies: SearchBody[]) => retry(() => pool.search(index, bodies, OPAQUE_ID), options);
  const ordinals = Array.from({ length: SAMPLES }, (_, i) => Math.round((i * (total - 1)) / (SAMPLES - 1)));
  // A set, because the ordinals repeat if the index has fewer packages than `SAMPLES`.
  for (const ordinal of new Set(ordinals)) {
    const [entry] = read(await run([browsePage(ordinal, 1)]));
    if (entry === undefined) throw new Error(`the new index has no package with the ordinal ${ordinal}`);
    const characters = codePoints(unifySeparators(meta.name_rule, entry.name));
    if (characters.length < 2) continue;
    const q = characters.slice(0, 100).join('');
    const { groups, truncated } = await searchTierByTier(run, { q, limit: 500 });
    // If more names match than the limit, the results may lack the package.
    if (!truncated && !read(groups).some(({ no }) => no === entry.no)) {
      throw new Error(`the new index does not find the package ${JSON.stringify(entry.name)}`);
    }
  }
}

/** The entries as a client receives them. */
function read(groups: EntryGroup[]): PackageEntry[] {
  return (JSON.parse(writeResponseBody('{"results":[', groups).toString()) as { results: PackageEntry[] })
    .results;
}
