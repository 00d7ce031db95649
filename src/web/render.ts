import { INITIAL_LIMIT, toUrl, MAX_LIMIT, type SearchView, type Sort, type ViewState } from './url-state.js';
import type { Change, ChangeCounts, Match, Package } from './api.js';
import type { LookAlike } from './look-alikes.js';
import { copyButton } from './copy-button.js';
import { element } from './dom.js';
import { pluralize, formatCompact, formatNumber } from './format.js';
import { highlight } from './highlight.js';
import type { NameRule } from '../util/name-rule.js';

/** Number of packages on a page of all packages. */
export const PAGE_SIZE = 100;

const TITLES = ['Exactly this name', 'Names that start with it', 'Names that contain it'];

/**
 * One list of matches per rank, a link to their JSON, and links to feeds. If there are more matches, adds a link to the
 * view with the maximum limit. If `MAX_LIMIT` matches are shown already, adds a button that loads more instead.
 * @param path the URL path that returns the first matches as JSON.
 * @param rule the name rule of the service, by which names match the query.
 */
export function renderMatches(
  matches: readonly Match[],
  view: SearchView,
  more: boolean,
  path: string,
  rule: NameRule,
): HTMLElement[] {
  const groups = TITLES.flatMap((title, rank) => {
    const group = matches.filter((match) => match.rank === rank);
    if (group.length === 0) return [];
    // The last shown rank may have more matches.
    const isWhole = !more || matches.at(-1)?.rank !== rank;
    const count = `${isWhole ? '' : 'first '}${formatNumber(group.length)}`;
    const heading = element('h2', {}, title, ' ', element('small', {}, count));
    return [element('section', {}, heading, listOf(group, view.query, rule))];
  });
  const feeds = [
    ...(path.startsWith('search') ? feedLink({ q: view.query }, 'Follow this search') : []),
    ...matches
      .slice(0, 1)
      .flatMap(({ rank, name }) => (rank === 0 ? feedLink({ like: name }, 'Follow its look-alikes') : [])),
  ];
  if (groups.length === 0) return feeds.length === 0 ? [] : [element('p', { class: 'pager' }, ...feeds)];
  const isFull = matches.length >= MAX_LIMIT;
  const json = element('a', { href: path }, 'This search as JSON');
  const links = element('p', { class: 'pager' }, json, ...feeds);
  if (more && !isFull) links.prepend(linkTo(toUrl({ ...view, limit: MAX_LIMIT }), `Show up to ${MAX_LIMIT}`));
  return [...groups, ...(more && isFull ? [moreButton()] : []), links];
}

/**
 * A link to the feed of new packages with matching names. Empty if the page has no `alternate` link: then the service
 * has no feeds.
 */
function feedLink(names: { q: string } | { like: string }, text: string): HTMLElement[] {
  if (document.querySelector('link[rel="alternate"]') === null) return [];
  const href = `changes.atom?${new URLSearchParams(names).toString()}`;
  return [element('a', { href, type: 'application/atom+xml' }, text)];
}

/** Suggested names for a query without matches. Each links to a search for this name. */
export function renderSuggestions(suggestions: readonly Package[], sort: Sort): HTMLElement {
  const items = suggestions.map((one) => element('li', {}, linkToSearch(one, sort)));
  return element('section', {}, element('h2', {}, 'Did you mean'), listOfItems(items));
}

/** Names that are easily mistaken for a package's name. Each links to a search for this name. */
export function renderLookAlikes(lookAlikes: readonly LookAlike[], sort: Sort): HTMLElement {
  const items = lookAlikes.map((one) => {
    const link = linkToSearch(one, sort);
    if (one.isMuchMoreUsed) link.append(' ', element('span', { class: 'much-more' }, 'much more used'));
    return element('li', {}, link);
  });
  return element(
    'section',
    { class: 'look-alikes' },
    element('h3', {}, 'Easily mistaken for'),
    element('ul', { role: 'list' }, ...items),
  );
}

/** A link to a search for the name of a package. */
function linkToSearch({ name, weight }: Package, sort: Sort): HTMLAnchorElement {
  return element(
    'a',
    { href: toUrl({ query: name, sort, limit: INITIAL_LIMIT }), 'data-within': '' },
    element('bdi', { class: 'name', translate: 'no' }, name),
    element('span', { class: 'facts' }, ...weightOf(weight)),
  );
}

/** A page of all packages, with links to the other pages. */
export function renderPage(
  packages: readonly Package[],
  page: number,
  total: number | undefined,
): HTMLElement[] {
  const last = total === undefined ? undefined : Math.max(1, Math.ceil(total / PAGE_SIZE));
  const pages: [text: string, to: number, exists: boolean][] = [
    ['First', 1, page > 1],
    ['Previous', Math.min(page - 1, last ?? page - 1), page > 1],
    ['Next', page + 1, last === undefined ? packages.length === PAGE_SIZE : page < last],
    ['Last', last ?? page, last !== undefined && page < last],
  ];
  const links = pages
    .filter(([, , exists]) => exists)
    .map(([text, to]) => linkTo(toUrl({ page: to }), text, ' page'));
  const place =
    last === undefined ? `Page ${formatNumber(page)}` : `Page ${formatNumber(page)} of ${formatNumber(last)}`;
  const pager = element(
    'nav',
    { 'aria-label': 'Pages', class: 'pager' },
    element('span', {}, place),
    ...links,
  );
  const list = packages.length > 0 ? listOf(packages) : element('p', {}, 'This page is past the end.');
  const download = element('a', { href: 'export?format=csv' }, 'Download as CSV');
  const heading = element('div', { class: 'titled' }, element('h2', {}, 'All packages'), download);
  return [element('section', {}, heading, list), pager];
}

/**
 * The changes since the previous snapshot, in name order, with a link to the feed. If there are more changes, adds a
 * button that loads them.
 */
export function renderChanges(changes: readonly Change[], more: boolean): HTMLElement[] {
  const feed = element('a', { href: 'changes.atom', type: 'application/atom+xml' }, 'Feed of new packages');
  const items = changes.map((one) => {
    const badge = element('span', { class: `change ${one.change}` }, one.change);
    return itemOf(one, '', 'exact', badge, ' ');
  });
  const section = element(
    'section',
    {},
    element('h2', {}, 'What changed since the previous snapshot'),
    element('p', {}, feed),
    ...(items.length === 0 ? [] : [listOfItems(items)]),
  );
  return more ? [section, moreButton()] : [section];
}

/**
 * A summary of the changes since the previous snapshot.
 * @param counts the counts of all changes; undefined if unknown.
 * @param isFirst whether the snapshot was not compared with a previous one.
 */
export function changesSummary(
  changes: readonly Change[],
  more: boolean,
  counts: ChangeCounts | undefined,
  isFirst: boolean,
): string {
  if (isFirst) return 'The snapshot has not been compared with a previous one.';
  const shown = pluralize(changes.length, 'change');
  if (!more) {
    if (changes.length === 0) return 'Nothing has changed since the previous snapshot.';
    return `${shown}: ${describeCounts(countChanges(changes))}.`;
  }
  if (counts === undefined) return `The first ${shown}; there are more.`;
  const total = counts.added + counts.removed + counts.updated;
  return `The first ${formatNumber(changes.length)} of ${pluralize(total, 'change')}: ${describeCounts(counts)}.`;
}

function countChanges(changes: readonly Change[]): ChangeCounts {
  const counts = { added: 0, removed: 0, updated: 0 };
  for (const { change } of changes) counts[change]++;
  return counts;
}

/** `123 added, 45 removed, 6 updated`. */
export function describeCounts({ added, removed, updated }: ChangeCounts): string {
  return `${formatNumber(added)} added, ${formatNumber(removed)} removed, ${formatNumber(updated)} updated`;
}

/** The text of the status line, which screen readers announce. */
export type Summary = readonly (Node | string)[];

/** How many names match, as text: `1,234`, `more than 10,000`; undefined if unknown. */
export function totalOf({ total, total_is_exact }: { total?: number; total_is_exact?: boolean }) {
  if (total === undefined) return undefined;
  return `${total_is_exact === false ? 'more than ' : ''}${formatNumber(total)}`;
}

/** A summary of the search results. */
export function summaryOf(
  matches: readonly Match[],
  query: string,
  more: boolean,
  { total, suggestions = [] }: { total?: string | undefined; suggestions?: readonly Package[] },
): Summary {
  if (more && total !== undefined) {
    const shown = formatNumber(matches.length);
    return quoting(`The first ${shown} of ${total} packages with`, query, ' in the name.');
  }
  const shown = pluralize(matches.length, 'package');
  if (more) return quoting(`The first ${shown} with`, query, ' in the name; there are more.');
  if (matches.length > 0) return quoting(`${shown} with`, query, ' in the name.');
  const none = quoting('No name contains', query, '.');
  return suggestions.length > 0 ? [...none, ` ${pluralize(suggestions.length, 'similar name')}.`] : none;
}

/** A sentence with a query in it. The query is isolated, so that it keeps its own text direction. */
export function quoting(before: string, query: string, after: string): Summary {
  // U+2069 (pop directional isolate) in the query would end the isolation of an inline element. It cannot end the
  // isolation of an inline block.
  const name = query.includes('\u2069') ? 'query boxed' : 'query';
  return [`${before} “`, element('bdi', { class: name, translate: 'no' }, query), `”${after}`];
}

/** The window title of a view. */
export function titleOf(shown: ViewState): string {
  // Direction marks in the query could reverse the rest of the title. A title cannot contain elements that isolate the
  // query.
  if ('query' in shown) return `${shown.query.replace(/\p{Bidi_Control}/gu, '')} – Package search`;
  if ('changes' in shown) return 'What changed – Package search';
  return shown.page === 1 ? 'Package search' : `Page ${formatNumber(shown.page)} – Package search`;
}

function listOf(packages: readonly Package[], query = '', rule: NameRule = 'exact'): HTMLUListElement {
  return listOfItems(packages.map((one) => itemOf(one, query, rule)));
}

function listOfItems(items: readonly HTMLLIElement[]): HTMLUListElement {
  return element('ul', { class: 'packages', role: 'list' }, ...items);
}

/** @param before elements and texts shown before the name. */
function itemOf(
  { name, version, url, weight }: Package,
  query: string,
  rule: NameRule,
  ...before: (Node | string)[]
): HTMLLIElement {
  const parts = highlight(name, query, rule).map(({ text, found }) =>
    found ? element('mark', {}, text) : text,
  );
  return element(
    'li',
    {},
    element(
      'a',
      { href: url, rel: 'noopener' },
      ...before,
      element('bdi', { class: 'name', translate: 'no' }, ...parts),
      ' ',
      element(
        'span',
        { class: 'facts' },
        element('bdi', { class: 'version', translate: 'no' }, version),
        ...weightOf(weight),
      ),
    ),
    ...copyButton(name),
  );
}

/** A rounded weight, and the exact number for screen readers. */
function weightOf(weight: number | undefined): (Node | string)[] {
  if (weight === undefined) return [];
  const exact = pluralize(weight, 'use');
  return [
    ' ',
    element('span', { class: 'weight', 'aria-hidden': 'true', title: exact }, formatCompact(weight)),
    element('span', { class: 'unseen' }, exact),
  ];
}

function moreButton(): HTMLElement {
  return element('p', {}, element('button', { type: 'button', id: 'more' }, 'Show more'));
}

/** A link to another view of this page. @param unseen text for screen readers only. */
function linkTo(address: string, text: string, unseen?: string): HTMLAnchorElement {
  const hidden = unseen === undefined ? [] : [element('span', { class: 'unseen' }, unseen)];
  return element('a', { href: address, 'data-within': '' }, text, ...hidden);
}
