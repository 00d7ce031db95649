/** A number with thousands separators: `63,666`. */
export function formatNumber(count: number): string {
  return count.toLocaleString('en');
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** A number rounded to at most three significant digits: `12.3 M`. */
export function formatCompact(count: number): string {
  // A narrow no-break space.
  return COMPACT.format(count).replace(/(?=[A-Z]$)/, '\u202F');
}

/** `1 package`, `2 packages`. */
export function pluralize(count: number, thing: string): string {
  return `${formatNumber(count)} ${thing}${count === 1 ? '' : 's'}`;
}

/**
 * Splits a name at the words that it contains, regardless of case: these are the parts at odd indices. Separators match
 * each other, because the name rule of the registry may unify them.
 */
export function splitAtWords(name: string, words: readonly string[]): string[] {
  if (words.length === 0) return [name];
  const escaped = words.map((word) => word.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&'));
  const patterns = escaped.map((word) => word.replace(/(?:[-_]|\\\.)+/g, '[-_.]+'));
  return name.split(new RegExp(`(${patterns.join('|')})`, 'giu'));
}
