import type { PackageEntry } from '../snapshot/package-fields.js';
import type { TypedQuery } from '../util/typed-text.js';
import { element } from './dom.js';
import { formatCompact, pluralize, splitAtWords } from './format.js';
import { INITIAL_LIMIT, toUrl, type Sort, type View } from './url-state.js';

/** Packages that link to the registry. @param words are highlighted in their names. */
export function packageList(
  packages: readonly PackageEntry[],
  words: readonly string[] = [],
): HTMLUListElement {
  const links = packages.map(({ name, version, url, description, weight }) => {
    const parts = splitAtWords(name, words).map((text, i) =>
      i % 2 === 1 ? element('mark', {}, text) : text,
    );
    return element(
      'a',
      { href: url, rel: 'noopener' },
      element('bdi', { class: 'name', translate: 'no' }, ...parts),
      ' ',
      element(
        'span',
        { class: 'facts' },
        element('bdi', { class: 'version', translate: 'no' }, version),
        ...weightOf(weight),
      ),
      ...(description === undefined
        ? []
        : [' ', element('span', { class: 'description', dir: 'auto' }, description)]),
    );
  });
  return listOf(links, 'packages');
}

/** A list without bullets. */
export function listOf(items: readonly HTMLElement[], className: string): HTMLUListElement {
  return element('ul', { class: className, role: 'list' }, ...items.map((item) => element('li', {}, item)));
}

export function linkToSearch({ name, weight }: PackageEntry, sort: Sort): HTMLAnchorElement {
  return linkTo(
    { query: name, sort, limit: INITIAL_LIMIT },
    element('bdi', { class: 'name', translate: 'no' }, name),
    element('span', { class: 'facts' }, ...weightOf(weight)),
  );
}

/** A link to another view of this page, which gives the search box the focus. */
export function linkTo(view: View, ...children: (Node | string)[]): HTMLAnchorElement {
  return element('a', { href: toUrl(view), 'data-within': '' }, ...children);
}

/** A link to a view with more matches. It keeps the scroll position, and focuses the first match after `shown`. */
export function linkToMore(view: View, text: string, shown: number): HTMLAnchorElement {
  return element('a', { href: toUrl(view), 'data-within': String(shown) }, text);
}

/** Empty if the page has no `alternate` link: then the service has no feeds. */
export function feedLink(text: string, names?: TypedQuery | { like: string }): HTMLElement[] {
  if (document.querySelector('link[rel="alternate"]') === null) return [];
  const search = names === undefined ? '' : `?${new URLSearchParams({ ...names }).toString()}`;
  return [element('a', { href: `changes.atom${search}`, type: 'application/atom+xml' }, text)];
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
