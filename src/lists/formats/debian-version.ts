/**
 * Compares two versions of Debian packages (`[epoch:]upstream[-revision]`) as dpkg does; deb-version(7) describes the
 * order.
 * @returns a negative number if `a` is lower, a positive one if it is higher, 0 if they are equal, such as 1.0 and 1.0-0.
 */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [splitVersion(a), splitVersion(b)];
  return (
    compareParts(left.epoch, right.epoch) ||
    compareParts(left.upstream, right.upstream) ||
    compareParts(left.revision, right.revision)
  );
}

/** The epoch ends at the first colon, the revision begins after the last hyphen. */
function splitVersion(version: string): { epoch: string; upstream: string; revision: string } {
  const colon = version.indexOf(':');
  const rest = version.slice(colon + 1);
  const hyphen = rest.lastIndexOf('-');
  return {
    epoch: version.slice(0, Math.max(colon, 0)),
    upstream: hyphen === -1 ? rest : rest.slice(0, hyphen),
    revision: hyphen === -1 ? '' : rest.slice(hyphen + 1),
  };
}

/** Compares the leading text, then the number after it, then the text after that, and so on. */
function compareParts(a: string, b: string): number {
  const [left, right] = [splitRuns(a), splitRuns(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const [leftText, leftNumber] = left[i] ?? ['', 0n];
    const [rightText, rightNumber] = right[i] ?? ['', 0n];
    const difference = compareText(leftText, rightText);
    if (difference !== 0) return difference;
    if (leftNumber !== rightNumber) return leftNumber < rightNumber ? -1 : 1;
  }
  return 0;
}

/** Pairs of text and the number that follows it. An absent number counts as 0. */
function splitRuns(part: string): [text: string, number: bigint][] {
  return [...part.matchAll(/(\D*)(\d*)/g)].map(([, text = '', digits = '']) => [text, BigInt(digits)]);
}

function compareText(a: string, b: string): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = rank(a[i]) - rank(b[i]);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** A tilde sorts before the end of the text, and letters before all other characters. */
function rank(character: string | undefined): number {
  if (character === undefined) return 0;
  if (character === '~') return -1;
  const code = character.charCodeAt(0);
  return /[A-Za-z]/.test(character) ? code : code + 0x10000;
}
