import { pick, seededRandom } from '../../test/fixtures/random.js';

/** The most frequent trigrams: each is in more than one of a hundred names. */
const TRIGRAMS = 300;

/** The longest query that is allowed. */
const LONGEST = 100;

/**
 * Queries that no name contains, although many names have all or most of their trigrams, so that an engine reads long
 * lists for nothing: chains of frequent trigrams, short and long, and repeated words.
 * @param count of each.
 */
export function hardQueries(names: readonly string[], count: number): string[] {
  const lower = names.map((name) => name.toLowerCase());
  const random = seededRandom(7);
  const trigrams = continued(mostFrequent(lower.flatMap(trigramsOf), TRIGRAMS));
  const chain = (length: number) => {
    let text = pick(random, trigrams);
    while (text.length < length) {
      const end = text.slice(-2);
      text += pick(
        random,
        trigrams.filter((trigram) => trigram.startsWith(end)),
      ).slice(-1);
    }
    return text;
  };
  const chains = (length: number) => {
    const queries: string[] = [];
    while (queries.length < count) {
      const text = chain(length);
      if (!lower.some((name) => name.includes(text))) queries.push(text);
    }
    return queries;
  };
  const words = mostFrequent(
    lower.flatMap((name) => name.split('-')),
    count,
  );
  const repeated = words.map((word) => `${word}-`.repeat(LONGEST).slice(0, LONGEST));
  return [...chains(8), ...chains(LONGEST), ...repeated];
}

function trigramsOf(name: string): string[] {
  return Array.from({ length: Math.max(0, name.length - 2) }, (_, start) => name.slice(start, start + 3));
}

export function mostFrequent(items: readonly string[], count: number): string[] {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1);
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([item]) => item);
}

/** Only trigrams that another one of them continues. */
function continued(trigrams: readonly string[]): string[] {
  const kept = trigrams.filter((one) => trigrams.some((other) => other.startsWith(one.slice(1))));
  return kept.length === trigrams.length ? kept : continued(kept);
}
