import type { PackageEntry } from '../snapshot/package-fields.js';
import { isLimitNear } from './api.js';
import { byId, element, pause } from './dom.js';
import { pluralize } from './format.js';
import { linkToSearch, listOf } from './package-list.js';
import { announce } from './results.js';
import { fetchSimilar, MAX_SHOWN, mostUsed } from './similar-names.js';
import type { Sort } from './url-state.js';

/** Delay of suggestions for a query without matches, in milliseconds. They cost more than a search. */
const SUGGEST_MS = 300;

/** Delay of look-alikes of an exact match, in milliseconds. Users who continue typing want a different name. */
const LOOK_ALIKES_MS = 500;

/** Number of requested look-alikes. The service sorts by distance first, so the most used names may come late. */
const MAX_REQUESTED = 50;

/** Shows names to search for instead of a query without matches, nearest first. */
export async function showSuggestions(query: string, sort: Sort, signal: AbortSignal): Promise<void> {
  await pause(SUGGEST_MS, signal);
  const names = await fetchSimilar(query, MAX_SHOWN, signal);
  if (names.length === 0) return;
  const list = listOf(
    names.map((one) => linkToSearch(one, sort)),
    'packages',
  );
  byId('packages').prepend(element('section', {}, element('h2', {}, 'Did you mean'), list));
  announce(`${pluralize(names.length, 'similar name')}.`);
}

/** Shows names that are easily mistaken for an exact match, after the first list. */
export async function showLookAlikes(exact: PackageEntry, sort: Sort, signal: AbortSignal): Promise<void> {
  await pause(LOOK_ALIKES_MS, signal);
  // The remaining points are reserved for searches.
  if (isLimitNear) return;
  const lookAlikes = mostUsed(exact, await fetchSimilar(exact.name, MAX_REQUESTED, signal));
  if (lookAlikes.length === 0) return;
  const links = lookAlikes.map((one) => {
    const link = linkToSearch(one, sort);
    if (one.isMuchMoreUsed) link.append(' ', element('span', { class: 'much-more' }, 'much more used'));
    return link;
  });
  const title = element('h3', {}, 'Easily mistaken for');
  const section = element('section', { class: 'look-alikes' }, title, listOf(links, ''));
  byId('packages').firstElementChild?.after(section);
  const muchMore = lookAlikes.filter((one) => one.isMuchMoreUsed).length;
  const mark = muchMore > 0 ? `, ${muchMore} of them much more used` : '';
  announce(`Easily mistaken for ${pluralize(lookAlikes.length, 'name')}${mark}.`);
}
