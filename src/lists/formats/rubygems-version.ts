/** Whether a version is a prerelease: whether it has a letter. */
export function isPrerelease(version: string): boolean {
  return /[a-z]/i.test(version);
}

/**
 * Compares two versions of gems as RubyGems does (`Gem::Version`): part by part, where a word is lower than a number, and a
 * missing part is 0.
 * @returns a negative number if `a` is lower, a positive one if it is higher, 0 if they are equal, such as 1 and 1.0.
 */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = compareParts(left[i] ?? 0n, right[i] ?? 0n);
    if (difference !== 0) return difference;
  }
  return 0;
}

type Part = bigint | string;

/**
 * Numbers and words. Zeros directly before the first word and at the end of the version are omitted, because they make no
 * difference.
 */
function partsOf(version: string): Part[] {
  const parts = (version.match(/\d+|[a-z]+/gi) ?? []).map((part) => (/^\d/.test(part) ? BigInt(part) : part));
  const firstWord = parts.findIndex((part) => typeof part === 'string');
  const numbers = firstWord === -1 ? parts : parts.slice(0, firstWord);
  return [...withoutZeros(numbers), ...withoutZeros(parts.slice(numbers.length))];
}

function withoutZeros(parts: Part[]): Part[] {
  return parts.slice(0, parts.findLastIndex((part) => part !== 0n) + 1);
}

function compareParts(a: Part, b: Part): number {
  if (typeof a !== typeof b) return typeof a === 'string' ? -1 : 1;
  return a === b ? 0 : a < b ? -1 : 1;
}
