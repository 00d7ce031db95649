import { unifySeparators, type NameRule } from './name-rule.js';
import { codePoints } from './unicode.js';

/** Minimum length of a query, and of each word with `match=words`, in code points of the compared form. */
export const MIN_LENGTH = 2;

/** Maximum number of words with `match=words`. */
export const MAX_WORDS = 8;

/** The words of a query: what white space separates. */
export function wordsOf(q: string): string[] {
  return q.split(/\p{White_Space}+/u).filter((word) => word !== '');
}

/** The length is measured after the separators are unified by the name rule. */
export function isLongEnough(text: string, rule: NameRule): boolean {
  const compared = unifySeparators(rule, text);
  // A character has two code units at most.
  return compared.length >= 2 * MIN_LENGTH || codePoints(compared).length >= MIN_LENGTH;
}

/** Parameters of a search. */
export type TypedQuery = { q: string; match?: 'words' };

/**
 * The search for text as people type it: unlike with `/search`, words that are too short are left out, because they
 * may be unfinished, and so are words beyond the first eight. Undefined if no word is left: nothing matches.
 */
export function typedQuery(text: string, rule: NameRule = 'exact'): TypedQuery | undefined {
  const words = wordsOf(text).filter((word) => isLongEnough(word, rule));
  if (words.length === 0) return undefined;
  const q = words.slice(0, MAX_WORDS).join(' ');
  return words.length === 1 ? { q } : { q, match: 'words' };
}
