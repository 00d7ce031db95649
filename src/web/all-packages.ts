import type { PackageEntry } from '../snapshot/package-fields.js';
import { listWith, requestJson } from './api.js';
import { byId, element } from './dom.js';
import { formatNumber } from './format.js';
import { feedLink, linkTo, packageList } from './package-list.js';
import { display } from './results.js';

const PAGE_SIZE = 100;

/** The links of a page, by the relation of their target in the `Link` header. */
const TEXTS = [
  ['first', 'First'],
  ['prev', 'Previous'],
  ['next', 'Next'],
  ['last', 'Last'],
] as const;

export async function showPage(page: number, signal: AbortSignal): Promise<void> {
  const path = `browse?page=${page}&limit=${PAGE_SIZE}`;
  const { body, headers } = await requestJson(path, listWith({ page }), signal);
  const packages = body['results'] as PackageEntry[];
  const targets = (headers.get('Link') ?? '').matchAll(/page=(\d+)[^>]*>; rel="(\w+)"/g);
  const pages = new Map(Array.from(targets, ([, page, relation]) => [relation, Number(page)]));
  const links = TEXTS.flatMap(([relation, text]) => {
    const target = pages.get(relation) ?? page;
    if (target === page) return [];
    return [linkTo({ page: target }, text, element('span', { class: 'unseen' }, ' page'))];
  });
  const last = pages.get('last');
  const place = `Page ${formatNumber(page)}${last === undefined ? '' : ` of ${formatNumber(last)}`}`;
  const list = packages.length > 0 ? packageList(packages) : element('p', {}, 'This page is past the end.');
  const heading = element(
    'div',
    { class: 'titled' },
    element('h2', {}, 'All packages'),
    element('a', { href: 'export?format=csv' }, 'Download as CSV'),
  );
  byId('sort').hidden = true;
  display(
    [],
    [
      element('section', {}, heading, list),
      element('nav', { 'aria-label': 'Pages', class: 'pager' }, element('span', {}, place), ...links),
      element('p', { class: 'pager' }, ...feedLink('Feed of new packages')),
    ],
  );
}
