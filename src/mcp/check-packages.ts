import { z } from 'zod';
import { codePoints } from '../unicode.js';
import {
  lookAlikeSchema,
  packageSchema,
  type LookAlike,
  type Package,
  type SnapshotReader,
} from './snapshot-reader.js';

/** Maximum number of names in a call: that of `/lookup`. */
export const MAX_NAMES = 100;

/** Requests for look-alikes in a call. They cost three points each, of 120 a minute by default. */
const MAX_COMPARED = 10;

/** Look-alikes in the result of a name. */
const MAX_LOOK_ALIKES = 5;

/** Maximum length of a name that `/similar` accepts, and of its results. */
const MAX_LENGTH = 100;
const MAX_SIMILAR = 50;

/** How many times more a look-alike must be used than an existing package, to be suspected as the intended one. */
const FAR_MORE_USED = 100;

export const checkedSchema = z.object({
  name: z.string(),
  status: z.enum(['exists', 'exists_as', 'missing', 'not_checked']),
  package: packageSchema.optional(),
  look_alikes: z.array(lookAlikeSchema).optional(),
});

type Checked = z.output<typeof checkedSchema>;

/**
 * Checks names, one request after the other.
 * @param compareExisting also compares packages that exist with look-alikes that are used far more, beginning with the
 *   least used; only if entries have weights.
 * @returns one result for each name, in their order, without repetitions.
 */
export async function checkPackages(
  reader: SnapshotReader,
  names: readonly string[],
  compareExisting: boolean,
): Promise<Checked[]> {
  const unique = [...new Set(names)];
  const found = await reader.lookup(unique);
  const missing = unique.filter((name) => !found.has(name));
  const existing = compareExisting ? leastUsedFirst(found.values()) : [];
  const compared = [...missing, ...existing].filter((name) => codePoints(name).length <= MAX_LENGTH);
  const checked = new Map<string, Checked>();
  for (const name of compared.slice(0, MAX_COMPARED)) {
    const { results } = await reader.similar(name, MAX_SIMILAR);
    const entry = found.get(name);
    checked.set(name, entry === undefined ? missingName(name, results) : existingName(entry, results));
  }
  return unique.map((name) => {
    const entry = found.get(name);
    const unchecked =
      entry === undefined ? notChecked(name) : ({ name, status: 'exists', package: entry } as const);
    return checked.get(name) ?? unchecked;
  });
}

function notChecked(name: string): Checked {
  return { name, status: 'not_checked' };
}

function leastUsedFirst(packages: Iterable<Package>): string[] {
  const weighed = [...packages].filter(({ weight }) => weight !== undefined);
  return weighed.sort((a, b) => (a.weight ?? 0) - (b.weight ?? 0)).map(({ name }) => name);
}

/** A name without a package of exactly this spelling. At distance 0, only case and separators differ. */
function missingName(name: string, similar: readonly LookAlike[]): Checked {
  const [nearest] = similar;
  if (nearest?.distance !== 0)
    return { name, status: 'missing', look_alikes: similar.slice(0, MAX_LOOK_ALIKES) };
  const entry = packageSchema.parse(nearest);
  return { name, status: 'exists_as', package: entry, look_alikes: similar.slice(1, MAX_LOOK_ALIKES + 1) };
}

/** A package that may be a squat: with the look-alikes that are used far more. */
function existingName(entry: Package, similar: readonly LookAlike[]): Checked {
  const threshold = FAR_MORE_USED * Math.max(1, entry.weight ?? 0);
  const look_alikes = similar
    .filter(({ weight = 0 }) => weight >= threshold)
    .sort((a, b) => (b.weight ?? 0) - (a.weight ?? 0))
    .slice(0, MAX_LOOK_ALIKES);
  return { name: entry.name, status: 'exists', package: entry, look_alikes };
}
