/** A part of a version: a number or a word. A word sorts before any number. */
type Part = bigint | string;

/**
 * Compares two versions of Debian packages (`[epoch:]upstream[-revision]`) as dpkg does; deb-version(7) describes the
 * order.
 * @returns a negative number if `a` is lower, a positive one if it is higher, 0 if they are equal, such as 1.0 and
 * 1.0-0.
 */
export function compareDebianVersions(a: string, b: string): number {
  const right = debianParts(b);
  return debianParts(a).reduce((order, parts, i) => order || compareParts(parts, right[i] ?? []), 0);
}

/**
 * Splits a version into its epoch (before the first colon), upstream version, and revision (after the last hyphen), and
 * ranks the runs of each.
 */
function debianParts(version: string): Part[][] {
  const colon = version.indexOf(':');
  const rest = version.slice(colon + 1);
  const hyphen = rest.includes('-') ? rest.lastIndexOf('-') : rest.length;
  return [version.slice(0, Math.max(colon, 0)), rest.slice(0, hyphen), rest.slice(hyphen + 1)].map(rankRuns);
}

/**
 * Splits a text into alternating runs of non-digits and digits. A run of non-digits becomes the ranks of its
 * characters, followed by 0 for its end. A run of digits becomes a number. An empty run becomes 0.
 */
function rankRuns(text: string): Part[] {
  return [...text.matchAll(/(\D*)(\d*)/g)].flatMap(([, characters = '', digits = '']) => [
    ...Array.from(characters, rankOf),
    0n,
    BigInt(digits),
  ]);
}

/** The order is: tilde, end of the run, letters, all other characters. */
function rankOf(character: string): bigint {
  if (character === '~') return -1n;
  return BigInt(character.charCodeAt(0)) + (/[A-Za-z]/.test(character) ? 0n : 0x10000n);
}

/**
 * Compares two versions of R packages as R's `compareVersion` does: number by number, between dots and hyphens.
 * @returns a negative number if `a` is lower, a positive one if it is higher. Of 1.0 and 1.0.0, the longer one is
 * higher.
 */
export function compareRVersions(a: string, b: string): number {
  const [left = [], right = []] = [a, b].map((version) => (version.match(/\d+/g) ?? []).map(BigInt));
  return compareParts(left, right) || left.length - right.length;
}

/** Whether a version of a gem is a prerelease. Only prereleases have letters. */
export function isPrerelease(version: string): boolean {
  return /[a-z]/i.test(version);
}

/**
 * Compares two versions of gems as RubyGems does (`Gem::Version`), part by part.
 * @returns a negative number if `a` is lower, a positive one if it is higher, 0 if they are equal, such as 1 and 1.0.
 */
export function compareGemVersions(a: string, b: string): number {
  return compareParts(gemParts(a), gemParts(b));
}

/**
 * The numbers and words of a version, without the zeros directly before the first word and at the end. These zeros do
 * not change the order.
 */
function gemParts(version: string): Part[] {
  const parts = (version.match(/\d+|[a-z]+/gi) ?? []).map((part) => (/^\d/.test(part) ? BigInt(part) : part));
  const firstWord = parts.findIndex((part) => typeof part === 'string');
  const numbers = firstWord === -1 ? parts : parts.slice(0, firstWord);
  return [...withoutZeros(numbers), ...withoutZeros(parts.slice(numbers.length))];
}

function withoutZeros(parts: Part[]): Part[] {
  return parts.slice(0, parts.findLastIndex((part) => part !== 0n) + 1);
}

/** A missing part is 0. */
function compareParts(a: readonly Part[], b: readonly Part[]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const [left = 0n, right = 0n] = [a[i], b[i]];
    if (typeof left !== typeof right) return typeof left === 'string' ? -1 : 1;
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}
