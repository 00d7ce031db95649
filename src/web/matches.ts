import type { PackageEntry } from '../snapshot/package-fields.js';
import { MIN_LENGTH, typedQuery, wordsOf, type TypedQuery } from '../util/typed-text.js';
import { isObject, listWith, requestJson, type Members } from './api.js';
import { byId, element } from './dom.js';
import { formatNumber, pluralize } from './format.js';
import { showLookAlikes, showSuggestions } from './look-alikes.js';
import { feedLink, linkToMore, packageList } from './package-list.js';
import { display, quoting } from './results.js';
import { LIMIT_STEP, MAX_LIMIT, type SearchView } from './url-state.js';

const TITLES = ['Exactly this name', 'Names that start with it', 'Names that contain it'];
const TITLES_OF_WORDS = [
  'Exactly these words',
  'Names that start with the first word',
  'Names that contain all words',
];

/** 0: the name equals the query; 1: it starts with the query; 2: it contains the query. */
type Match = PackageEntry & { rank: 0 | 1 | 2 };

interface Matches {
  results: Match[];
  /** The number of all matches; if it is not exact, there are more. */
  total: number;
  total_is_exact: boolean;
}

function isTruncated({ results, total, total_is_exact }: Matches): boolean {
  return results.length < total || !total_is_exact;
}

/** Shows the matches of a query, then its look-alikes, or suggestions if nothing matches. */
export async function showMatches(view: SearchView, signal: AbortSignal): Promise<void> {
  const { query, sort, limit } = view;
  // Text without words that the service searches for is looked up as a whole name.
  const typed = typedQuery(query);
  const params = new URLSearchParams(
    typed ? { ...typed, sort, total: 'true', limit: String(Math.min(limit, LIMIT_STEP)) } : { name: query },
  );
  const path = `${typed ? 'search' : 'lookup'}?${params.toString()}`;
  const found = await (typed ? search(path, params.get('q'), limit, signal) : lookUp(path, query, signal));
  const { results } = found;
  const [first] = results;
  byId('sort').hidden = first?.weight === undefined;
  const more = limit < LIMIT_STEP ? LIMIT_STEP : limit + LIMIT_STEP;
  const links = element(
    'p',
    { class: 'pager' },
    ...(isTruncated(found) && limit < MAX_LIMIT
      ? [linkToMore({ ...view, limit: more }, `Show up to ${formatNumber(more)}`, results.length)]
      : []),
    element('a', { href: path }, 'This search as JSON'),
    ...(typed ? feedLink('Follow this search', typed) : []),
    ...(first?.rank === 0 ? feedLink('Follow its look-alikes', { like: first.name }) : []),
  );
  const status = typed ? statusOf(typed, found) : statusOfLookUp(query, first);
  display(status, [...groupsOf(typed ?? { q: query }, found), links]);
  if (first === undefined) await showSuggestions(query, sort, signal);
  else if (first.rank === 0) await showLookAlikes(first, sort, signal);
}

/** Requests one page after the other. @param query as it is in the path. */
async function search(
  path: string,
  query: string | null,
  limit: number,
  signal: AbortSignal,
): Promise<Matches> {
  const isExpected = listWith({ query });
  const isFirst = (body: Members) => isExpected(body) && typeof body['total'] === 'number';
  let { body, headers } = await requestJson(path, isFirst, signal);
  const found = body as unknown as Matches;
  while (found.results.length < limit) {
    const next = /<(\?[^>]*)>; rel="next"/.exec(headers.get('Link') ?? '')?.[1];
    if (next === undefined) break;
    ({ body, headers } = await requestJson(`search${next}`, isExpected, signal));
    found.results.push(...(body['results'] as Match[]));
  }
  return found;
}

async function lookUp(path: string, name: string, signal: AbortSignal): Promise<Matches> {
  const isExpected = ({ results }: Members) =>
    Array.isArray(results) && isObject(results[0]) && results[0]['name'] === name;
  const { body } = await requestJson(path, isExpected, signal);
  const [{ package: found }] = body['results'] as [{ package: PackageEntry | null }];
  const results: Match[] = found === null ? [] : [{ ...found, rank: 0 }];
  return { results, total: results.length, total_is_exact: true };
}

function statusOf({ q, match }: TypedQuery, found: Matches): (Node | string)[] {
  const { results, total, total_is_exact } = found;
  const what = match === 'words' ? ' all words of' : '';
  if (total === 0) return quoting(`No name contains${what}`, q, '.');
  const all = `${total_is_exact ? '' : 'more than '}${pluralize(total, 'package')} with${what}`;
  const shown = isTruncated(found) ? `The first ${formatNumber(results.length)} of ${all}` : all;
  return quoting(shown, q, ' in the name.');
}

function statusOfLookUp(query: string, found: Match | undefined): (Node | string)[] {
  const before = found === undefined ? 'No package is named' : 'The package named';
  return quoting(before, query, `. To search within names, type at least ${MIN_LENGTH} characters.`);
}

function groupsOf({ q, match }: TypedQuery, found: Matches): HTMLElement[] {
  const { results } = found;
  return (match === 'words' ? TITLES_OF_WORDS : TITLES).flatMap((title, rank) => {
    const group = results.filter((match) => match.rank === rank);
    if (group.length === 0) return [];
    // The last shown rank may have more matches.
    const isWhole = !isTruncated(found) || results.at(-1)?.rank !== rank;
    const count = `${isWhole ? '' : 'first '}${formatNumber(group.length)}`;
    const heading = element('h2', {}, title, ' ', element('small', {}, count));
    return [element('section', {}, heading, packageList(group, wordsOf(q)))];
  });
}
