import { ApiError, requestJson } from './api.js';
import { byId, element } from './dom.js';
import { pluralize } from './format.js';

/** Minimum time between two requests, in milliseconds. */
const REFRESH_MS = 5 * 60_000;

/** In the time zone of the user: `Jan 2, 2026, 3:04 AM`. */
const DATE = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });

/** When `/stats` was last requested, in milliseconds since the epoch; 0 if the request failed. */
let requestedAt = 0;

/** Shows the number of packages, the registry, and the date of the snapshot. Called when a view is shown. */
export async function refreshSnapshot(): Promise<void> {
  if (Date.now() - requestedAt < REFRESH_MS) return;
  requestedAt = Date.now();
  try {
    const { body, headers } = await requestJson('stats', ({ source }) => typeof source === 'string');
    // The only member with a count is the number of packages. Its name depends on the registry.
    const total = Number(Object.values(body).find(Number.isSafeInteger));
    const takenAt = Date.parse(headers.get('Last-Modified') ?? '');
    const parts = [[pluralize(total, 'package')], ['of ', websiteOf(String(body['source']))]];
    // Some proxies remove the header.
    if (!Number.isNaN(takenAt)) parts.push([`snapshot of ${DATE.format(takenAt)}`]);
    byId('snapshot').replaceChildren(...parts.map((part) => element('span', {}, ...part)));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    requestedAt = 0;
  }
}

/** The source is the host of a website, unless the operator has configured a different text. */
function websiteOf(source: string): Node | string {
  const isHost = /^[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?$/i.test(source);
  return isHost ? element('a', { href: `https://${source}/`, rel: 'noopener' }, source) : source;
}
