import { ApiError, requestJson, type Members } from './api.js';
import { byId, element } from './dom.js';
import { pluralize } from './format.js';

/** In the time zone of the user: `Jan 2, 2026, 3:04 AM`. */
const DATE = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });

/** Shows the number of packages, the registry, and the date of the snapshot, unless the page shows them already. */
export async function showSnapshot(): Promise<void> {
  const bar = byId('snapshot');
  if (bar.hasChildNodes()) return;
  const isStats = ({ source, taken_at }: Members) =>
    [source, taken_at].every((one) => typeof one === 'string');
  try {
    const { body } = await requestJson('stats', isStats);
    // The only member with a count is the number of packages. Its name depends on the registry.
    const total = Number(Object.values(body).find(Number.isSafeInteger));
    const takenAt = DATE.format(new Date(String(body['taken_at'])));
    const parts = [pluralize(total, 'package'), `of ${String(body['source'])}`, `snapshot of ${takenAt}`];
    bar.replaceChildren(...parts.map((part) => element('span', {}, part)));
  } catch (error) {
    // The next view tries again.
    if (!(error instanceof ApiError)) throw error;
  }
}
