import type { NameRule } from '../util/name-rule.js';
import { codePoints } from '../util/unicode.js';
import type { Cursor } from './cursor.js';
import type { NameFilter } from './name-filter.js';
import { wordsOf } from '../util/typed-text.js';
import { EXACT_CLAUSE, type SearchBody } from '../elasticsearch/msearch.js';
import {
  allOf,
  hitsOf,
  orderedPage,
  namesAfter,
  namesUpTo,
  type Clauses,
  type Query,
} from '../snapshot/name-order.js';
import { MAX_NAME_BYTES } from '../snapshot/package-document.js';

/**
 * Pure functions that create the bodies of searches. Elasticsearch lower-cases both names and queries, so they are
 * lower-cased by the same code. The caller unifies the separators of `q`, because the length of `q` is measured here.
 */

/** Highest weight first. Weights are indexed, so a search skips packages with lower weights than its hits. */
const BY_WEIGHT: Query = { weight: 'desc' };

/** Separators, which people confuse or forget. Distances ignore them, as `fold` in mappings/packages.json does. */
const SEPARATORS = /[-_. ]/g;

/** A suffix that sorts after every possible continuation of a name. */
const LAST = '\u{10FFFF}'.repeat(MAX_NAME_BYTES / 4);

/**
 * The two tiers of a search: names that start with `q`, equal names first, and names that contain `q` elsewhere.
 * @param size of each tier. @param after in the tier of this cursor, only later names match.
 */
export function searchTiers(
  q: string,
  size: number,
  after?: Cursor,
): [startsWith: SearchBody, containsElsewhere: SearchBody] {
  const startsWith = namesStartingWith(q);
  // A named clause instead of a score: with `track_scores` a search visits every match to find the best score.
  const equals = { term: { 'name.lowercase': { value: q, _name: EXACT_CLAUSE } } };
  const tier = orderedPage(size);
  const afterPage = (name: Cursor['tier']) => namesAfter(after?.tier === name ? after.name : undefined);
  const first = allOf({ filter: [startsWith] }, afterPage('startsWith'));
  const second = allOf({ filter: [contains(q)], must_not: [startsWith] }, afterPage('containsElsewhere'));
  return [
    { ...tier, query: { bool: { ...first, should: equals } } },
    { ...tier, query: { bool: second } },
  ];
}

/**
 * The tiers of a search with `sort=weight`: names that equal `q`, start with it, or contain it elsewhere. Each is
 * sorted by weight, then by name. Parameters as for `searchTiers`.
 */
export function searchTiersByWeight(q: string, size: number, after?: Cursor): SearchBody[] {
  const equals = namesEqualTo(q);
  const startsWith = namesStartingWith(q);
  const tiers = {
    equals: { filter: [equals] },
    startsWith: { filter: [startsWith], must_not: [equals] },
    containsElsewhere: { filter: [contains(q)], must_not: [startsWith] },
  };
  return disjointTiers(tiers, size, after, true);
}

/**
 * The tiers of a search for names that contain each word: names whose fold equals that of the joined words, other names
 * that start with the first word, and the rest. Other parameters as for `searchTiers`.
 */
export function wordTiers(
  words: readonly string[],
  size: number,
  after?: Cursor,
  byWeight = false,
): SearchBody[] {
  const all = words.map(contains);
  const equals = { term: { 'name.fold': { value: words.join(''), _name: EXACT_CLAUSE } } };
  const startsWith = namesStartingWith(words[0] as string);
  const tiers = {
    equals: { filter: [equals, ...all] },
    startsWith: { filter: [startsWith, ...all.slice(1)], must_not: [equals] },
    containsElsewhere: { filter: all, must_not: [startsWith, equals] },
  };
  return disjointTiers(tiers, size, after, byWeight);
}

/** Searches for tiers that have no name in common, sorted by weight or by name. */
function disjointTiers(
  tiers: Record<Cursor['tier'], Clauses>,
  size: number,
  after: Cursor | undefined,
  byWeight: boolean,
): SearchBody[] {
  const page = orderedPage(size, ...(byWeight ? [BY_WEIGHT] : []));
  return Object.entries(tiers).map(([tier, clauses]) => {
    const afterPage = after?.tier !== tier ? {} : byWeight ? entriesAfter(after) : namesAfter(after.name);
    return { ...page, query: { bool: allOf(clauses, afterPage) } };
  });
}

/** The few names that equal `q`, in name order. */
export function exactNames(q: string, size: number, after?: Cursor): SearchBody {
  return {
    ...orderedPage(size),
    query: { bool: allOf({ filter: [namesEqualTo(q)] }, namesAfter(after?.name)) },
  };
}

/** Names after an entry in the order of weights. */
function entriesAfter({ weight, name }: Cursor): Clauses {
  const sameWeight = allOf({ filter: [{ term: { weight } }] }, namesUpTo(name));
  return { filter: [{ range: { weight: { lte: weight } } }], must_not: [{ bool: sameWeight }] };
}

function namesEqualTo(q: string): Query {
  return { range: { 'name.lowercase': { gte: q, lte: q, _name: EXACT_CLAUSE } } };
}

/** A range on the sort fields of the index is found by binary search. A `prefix` query would visit every name. */
function namesStartingWith(q: string): Query {
  return { range: { 'name.lowercase': { gte: q, lt: q + LAST } } };
}

/** Records from the indices of several snapshots. Records of one name are adjacent, in no particular order. */
export function changesInNameOrder(size: number, after: string | undefined, only?: NameFilter): SearchBody {
  const query = { bool: allOf(namesAfter(after), selectedBy(only)) };
  return hitsOf(size, { query, sort: ['name.lowercase', 'name'] });
}

/** Records of packages that a snapshot added, by descending package number. */
export function newestAdditions(size: number, only?: NameFilter): SearchBody {
  const query = { bool: allOf({ filter: [{ term: { change: 'added' } }] }, selectedBy(only)) };
  return hitsOf(size, { query, sort: [{ no: 'desc' }] });
}

function selectedBy(filter: NameFilter | undefined): Clauses {
  if (filter === undefined) return {};
  if ('like' in filter) {
    const { like: name } = filter;
    const distance = maxDistance(name);
    // A fuzzy query builds an automaton for each index. For a long name, this takes 30 ms. The range of lengths makes
    // Elasticsearch skip indices without such a long name.
    const isLongEnough = { range: { length: { gte: lengthWithoutSeparators(name) - distance } } };
    return { filter: [isLongEnough, withinDistance(name, distance)], must_not: [{ term: { name } }] };
  }
  const { q, match } = filter;
  if (match === 'words') return { filter: wordsOf(q).map(contains) };
  return { filter: [{ contains, prefix: namesStartingWith, exact: namesEqualTo }[match](q)] };
}

/**
 * In no particular order. The inverted index of `name.fold` finds a hundred names in half the time that ranges on the
 * sort fields take. Few names have the same `name.fold`. The second filter selects among them.
 */
export function packagesNamed(names: readonly string[], nameRule: NameRule): SearchBody {
  const compared = nameRule === 'exact' ? 'name' : 'name.lowercase';
  const filter = [{ terms: { 'name.fold': names } }, { terms: { [compared]: names } }];
  return hitsOf(names.length, { query: { bool: { filter } } });
}

/** One edit changes a short name more. The index also lower-cases names, which does not change the length. */
function maxDistance(name: string): 0 | 1 | 2 {
  const length = lengthWithoutSeparators(name);
  if (length <= 2) return 0;
  return length <= 5 ? 1 : 2;
}

function lengthWithoutSeparators(name: string): number {
  return codePoints(name.replace(SEPARATORS, '')).length;
}

/**
 * One search for each distance of look-alikes. The index folds the name in the same way as stored names. The default
 * rewrite, unlike `constant_score`, limits the number of matching terms, so `fuzzy` would miss names.
 */
export function similarNames(name: string, size: number, byWeight = false): SearchBody[] {
  const itself = { term: { name } };
  return Array.from({ length: maxDistance(name) + 1 }, (_, edits) => ({
    ...orderedPage(size, ...(byWeight ? [BY_WEIGHT] : [])),
    query: {
      bool: {
        filter: withinDistance(name, edits),
        must_not: edits === 0 ? [itself] : [itself, withinDistance(name, edits - 1)],
      },
    },
  }));
}

/** Names whose `name.fold` is at most `edits` edits (optimal string alignment) away from the fold of `name`. */
function withinDistance(name: string, edits: number): Query {
  if (edits === 0) return { term: { 'name.fold': name } };
  return {
    fuzzy: {
      'name.fold': { value: name, fuzziness: edits, transpositions: true, rewrite: 'constant_score' },
    },
  };
}

/** The packages with these ordinals, in no particular order. */
export function packagesByOrdinal(ordinals: readonly number[]): SearchBody {
  return hitsOf(ordinals.length, { query: { terms: { ordinal: ordinals } } });
}

/** Packages by number: those with an ordinal in [from, from + size). */
export function browsePage(from: number, size: number): SearchBody {
  return hitsOf(size, { query: { range: { ordinal: { gte: from, lt: from + size } } }, sort: ['ordinal'] });
}

/** A query of 2 or 3 characters is one n-gram of that size. A longer query is a phrase of adjacent 3-grams. */
function contains(q: string): Query {
  const length = codePoints(q).length;
  if (length === 2) return { match: { 'name.bigrams': q } };
  if (length === 3) return { match: { 'name.trigrams': q } };
  return { match_phrase: { 'name.trigrams': q } };
}
