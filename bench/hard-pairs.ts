import { mostFrequent } from './peers/hard-queries.js';

/** Frequent parts of names that are considered. */
const PARTS = 600;

/** A pair is hard if at most this many of the given names have both parts. */
const MOST_COMMON = 2;

/**
 * Pairs of frequent parts that few or no names have in common, so that an engine reads long lists for nothing, the
 * most frequent ones first.
 */
export function hardPairs(names: readonly string[], count: number): string[] {
  const lower = names.map((name) => name.toLowerCase());
  const partsOf = (name: string) =>
    [2, 3, 5].flatMap((size) =>
      Array.from({ length: Math.max(0, name.length - size + 1) }, (_, at) => name.slice(at, at + size)),
    );
  const frequent = mostFrequent(lower.flatMap(partsOf), PARTS).filter((part) => !/\s/.test(part));
  const parts = frequent.map((part) => {
    const holders = lower.flatMap((name, i) => (name.includes(part) ? [i] : []));
    return { part, holders: new Set(holders) };
  });
  const pairs = parts.flatMap((one, i) =>
    parts.slice(i + 1).map((other) => ({
      text: `${one.part} ${other.part}`,
      common: [...one.holders].filter((holder) => other.holders.has(holder)).length,
      rarer: Math.min(one.holders.size, other.holders.size),
    })),
  );
  return pairs
    .filter(({ common }) => common <= MOST_COMMON)
    .sort((a, b) => b.rarer - a.rarer)
    .slice(0, count)
    .map(({ text }) => text);
}
