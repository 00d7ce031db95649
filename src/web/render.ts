import { INITIAL_LIMIT, toUrl, MAX_LIMIT, type ViewState } from './url-state.js';
import type { Match, Package } from './api.js';
import { pluralize, element, formatNumber } from './dom.js';
import { highlight } from './highlight.js';

/** How many packages a page of all of them has. */
export const PAGE_SIZE = 100;

const TITLES = ['Exactly this name', 'Names that start with it', 'Names that contain it'];

/**
 * The matches in a list for each rank that there is, and the way to more where there are more: a link to the address that
 * shows as many as one request may have, and a button beyond that.
 */
export function renderMatches(matches: readonly Match[], query: string, more: boolean): HTMLElement[] {
  const groups = TITLES.flatMap((title, rank) => {
    const group = matches.filter((match) => match.rank === rank);
    if (group.length === 0) return [];
    const heading = element('h2', {}, title, ' ', element('small', {}, formatNumber(group.length)));
    return [element('section', {}, heading, listOf(group, query))];
  });
  if (!more) return groups;
  if (matches.length >= MAX_LIMIT) {
    return [...groups, element('p', {}, element('button', { type: 'button', id: 'more' }, 'Show more'))];
  }
  const address = toUrl({ query, limit: MAX_LIMIT });
  return [...groups, element('p', {}, linkTo(address, `Show up to ${MAX_LIMIT}`))];
}

/** Names that a query without matches may have been meant for, each as the way to a search for it. */
export function renderSuggestions(suggestions: readonly Package[]): HTMLElement[] {
  if (suggestions.length === 0) return [];
  const items = suggestions.map(({ name }) => {
    const address = toUrl({ query: name, limit: INITIAL_LIMIT });
    const link = element('a', { href: address, 'data-within': '' }, element('bdi', { class: 'name' }, name));
    return element('li', {}, link);
  });
  const list = element('ul', { class: 'packages', role: 'list' }, ...items);
  return [element('section', {}, element('h2', {}, 'Did you mean'), list)];
}

/** A page of all packages, with the ways to the others. */
export function renderPage(
  packages: readonly Package[],
  page: number,
  total: number | undefined,
): HTMLElement[] {
  const last = total === undefined ? undefined : Math.max(1, Math.ceil(total / PAGE_SIZE));
  const ways: [text: string, to: number, isThere: boolean][] = [
    ['First', 1, page > 1],
    ['Previous', Math.min(page - 1, last ?? page - 1), page > 1],
    ['Next', page + 1, last === undefined ? packages.length === PAGE_SIZE : page < last],
    ['Last', last ?? page, last !== undefined && page < last],
  ];
  const links = ways.flatMap(([text, to, isThere]) =>
    isThere ? [linkTo(toUrl({ page: to }), text, ` page`)] : [],
  );
  const place =
    last === undefined ? `Page ${formatNumber(page)}` : `Page ${formatNumber(page)} of ${formatNumber(last)}`;
  const pager = element(
    'nav',
    { 'aria-label': 'Pages', class: 'pager' },
    element('span', {}, place),
    ...links,
  );
  const list =
    packages.length > 0
      ? listOf(packages, '')
      : element('p', {}, 'There is no such page: it is past the end.');
  return [element('section', {}, element('h2', {}, 'All packages'), list), pager];
}

/** What a search has found, in a sentence that a screen reader says, too. */
export function summaryOf(
  matches: readonly Match[],
  query: string,
  more: boolean,
  suggestions: readonly Package[] = [],
): string {
  const none = `No name contains “${query}”.`;
  if (suggestions.length > 0) return `${none} ${pluralize(suggestions.length, 'similar name')}.`;
  if (matches.length === 0) return none;
  if (more)
    return `The first ${pluralize(matches.length, 'package')} with “${query}” in the name; there are more.`;
  return `${pluralize(matches.length, 'package')} with “${query}” in the name.`;
}

/** What `shown` is, for the title of the window. */
export function titleOf(shown: ViewState): string {
  if ('query' in shown) return `${shown.query} – Package search`;
  return shown.page === 1 ? 'Package search' : `Page ${formatNumber(shown.page)} – Package search`;
}

function listOf(packages: readonly Package[], query: string): HTMLUListElement {
  return element('ul', { class: 'packages', role: 'list' }, ...packages.map((one) => itemOf(one, query)));
}

function itemOf({ name, version, url }: Package, query: string): HTMLLIElement {
  const parts = highlight(name, query).map(({ text, found }) => (found ? element('mark', {}, text) : text));
  return element(
    'li',
    {},
    element(
      'a',
      { href: url, rel: 'noopener' },
      element('bdi', { class: 'name' }, ...parts),
      ' ',
      element('span', { class: 'version' }, version),
    ),
  );
}

/** A link within the page. @param unseen said by screen readers alone. */
function linkTo(address: string, text: string, unseen?: string): HTMLAnchorElement {
  const hidden = unseen === undefined ? [] : [element('span', { class: 'unseen' }, unseen)];
  return element('a', { href: address, 'data-within': '' }, text, ...hidden);
}
