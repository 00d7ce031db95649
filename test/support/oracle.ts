import type { PackageEntry } from '../../src/search/package-document.js';

export interface RankedEntry extends PackageEntry {
  rank: 0 | 1 | 2;
}

/** The search of the contract as a plain loop over all packages: slow, and easy to believe. */
export class Oracle {
  readonly #packages: { entry: PackageEntry; lower: string }[];

  constructor(packages: PackageEntry[]) {
    this.#packages = packages.map((entry) => ({ entry, lower: lowerCase(entry.name) }));
    this.#packages.sort(
      (a, b) =>
        byCodePoint(a.lower, b.lower) || byCodePoint(a.entry.name, b.entry.name) || a.entry.no - b.entry.no,
    );
  }

  /** All matches of a trimmed query, in order. */
  search(q: string): RankedEntry[] {
    const query = lowerCase(q);
    const tiers: [RankedEntry[], RankedEntry[], RankedEntry[]] = [[], [], []];
    for (const { entry, lower } of this.#packages) {
      if (!lower.includes(query)) continue;
      const rank = lower === query ? 0 : lower.startsWith(query) ? 1 : 2;
      tiers[rank].push({ ...entry, rank });
    }
    return tiers.flat();
  }
}

/**
 * Lower case by code point, without context: what Lucene's filter does. JavaScript differs for one code point alone,
 * U+0130, which it maps to two.
 */
function lowerCase(text: string): string {
  return Array.from(text, (c) => (c === '\u0130' ? 'i' : c.toLowerCase())).join('');
}

/** UTF-8 has the order of code points; JavaScript's own comparison is by UTF-16 unit. */
function byCodePoint(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
