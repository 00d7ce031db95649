import * as z from 'zod';
import { codePoints } from '../util/unicode.js';
import {
  lookAlikeSchema,
  packageSchema,
  type LookAlike,
  type Package,
  type SnapshotReader,
} from './snapshot-reader.js';
import { candidatesIn } from './specifier.js';

/** Maximum number of requests for look-alikes in a call. Each costs three of (by default) 120 points a minute. */
const MAX_COMPARED = 10;

const MAX_LOOK_ALIKES = 5;

/** Maximum length of a name that `/similar` accepts, in code points, and maximum number of its results. */
const MAX_LENGTH = 100;
const MAX_SIMILAR = 50;

/** Maximum length of a name that `/lookup` accepts, in bytes. */
const MAX_BYTES = 512;

/** A look-alike that is used this many times as often as an existing package is probably the intended package. */
const FAR_MORE_USED = 100;

export const checkedSchema = z.object({
  name: z.string(),
  /** The name that was checked, if `name` has a version or other additions. */
  checked_name: z.string().optional(),
  status: z.enum(['exists', 'exists_as', 'missing', 'not_checked', 'invalid']),
  /** Why a name is invalid or was not compared. */
  reason: z.string().optional(),
  package: packageSchema.optional(),
  look_alikes: z.array(lookAlikeSchema).optional(),
});

type Checked = z.output<typeof checkedSchema>;

/**
 * Checks names, one request after the other. Versions and other additions to a name are removed, unless a package has
 * the whole text as its name, and architectures and releases if a package has the name before them.
 * Package URLs must be of the type of the registry.
 * @param compareExisting whether to search also for look-alikes that are used far more than an existing package.
 * Existing packages with the lowest weights are compared first. Packages without a weight are skipped.
 * @returns one result for each name, in the order of `names`.
 */
export async function checkPackages(
  reader: SnapshotReader,
  names: readonly string[],
  compareExisting: boolean,
): Promise<Checked[]> {
  const candidates = new Map(names.map((name) => [name, candidatesIn(name)]));
  const asked = [...new Set([...candidates].flat(2))];
  const { found, namesOfUrls } = await reader.lookup(asked.filter((name) => faultOf(name) === undefined));
  const nameOf = (name: string) =>
    namesOfUrls.get(candidates.get(name)?.[0] ?? name) ??
    [name, ...(candidates.get(name) ?? [])].find((one) => found.has(one)) ??
    candidates.get(name)?.[0];
  const checked = [...new Set(names.map(nameOf))].filter((name) => name !== undefined);
  const missing = checked.filter((name) => !found.has(name) && faultOf(name) === undefined);
  const compared = [...missing, ...(compareExisting ? leastUsedFirst(found, checked) : [])];
  const similar = new Map<string, LookAlike[]>();
  for (const name of compared.filter(isComparable).slice(0, MAX_COMPARED)) {
    similar.set(name, (await reader.similar(name, MAX_SIMILAR)).results);
  }
  return names.map((given) => {
    const name = nameOf(given);
    const fault = faultOf(name ?? given);
    if (name === undefined || fault !== undefined) {
      return { name: given, status: 'invalid', reason: fault ?? NAMELESS };
    }
    const differing = name === given ? {} : { checked_name: name };
    return { name: given, ...differing, ...resultOf(name, found.get(name), similar.get(name)) };
  });
}

const NAMELESS = 'this is not a name: ask for the name alone, without version, address or command';

/** Why a text cannot be the name of a package; undefined if it can. */
function faultOf(name: string): string | undefined {
  if (name === '') return 'the name is empty';
  return Buffer.byteLength(name) > MAX_BYTES ? `the name has more than ${MAX_BYTES} bytes` : undefined;
}

function isComparable(name: string): boolean {
  return codePoints(name).length <= MAX_LENGTH;
}

/** The names of packages with a weight. */
function leastUsedFirst(found: ReadonlyMap<string, Package>, names: readonly string[]): string[] {
  const weightOf = (name: string) => found.get(name)?.weight;
  return names
    .filter((name) => weightOf(name) !== undefined)
    .sort((a, b) => (weightOf(a) ?? 0) - (weightOf(b) ?? 0));
}

/**
 * @param found the package that has the name by the name rule of the registry.
 * @param similar undefined if the name was not compared. At distance 0, only case and separators differ.
 */
function resultOf(
  name: string,
  found: Package | undefined,
  similar: readonly LookAlike[] | undefined,
): Omit<Checked, 'name'> {
  if (found !== undefined) {
    return { status: 'exists', package: found, look_alikes: similar && farMoreUsed(found, similar) };
  }
  const [nearest] = similar ?? [];
  const other = nearest?.distance === 0 ? packageSchema.parse(nearest) : undefined;
  const look_alikes = similar?.filter((one) => one.name !== other?.name).slice(0, MAX_LOOK_ALIKES);
  if (other !== undefined) return { status: 'exists_as', package: other, look_alikes };
  if (look_alikes === undefined && isComparable(name)) return { status: 'not_checked' };
  // Names may have spaces, but a text with spaces is probably a command.
  if (/\s/.test(name)) return { status: 'invalid', reason: NAMELESS };
  if (look_alikes !== undefined) return { status: 'missing', look_alikes };
  return { status: 'missing', reason: `names of over ${MAX_LENGTH} characters are not compared` };
}

/** The look-alikes that are used far more than an existing package. The package may be a typosquat. */
function farMoreUsed(entry: Package, similar: readonly LookAlike[]): LookAlike[] {
  const threshold = FAR_MORE_USED * Math.max(1, entry.weight ?? 0);
  return similar
    .filter(({ weight = 0 }) => weight >= threshold)
    .sort((a, b) => (b.weight ?? 0) - (a.weight ?? 0))
    .slice(0, MAX_LOOK_ALIKES);
}
