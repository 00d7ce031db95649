import { withDeadline } from '../util/deadline.js';
import { NAME_RULES, type NameRule } from '../util/name-rule.js';
import { changeCounts, fetchJson, isObject, type ChangeCounts } from './api.js';
import { byId, element } from './dom.js';
import { pluralize, formatNumber } from './format.js';
import { describeCounts } from './render.js';
import { toUrl } from './url-state.js';

const CHECK_MS = 15_000;

/**
 * Maximum time between two requests of `/stats`, in milliseconds. Without it, the page would miss a new snapshot with
 * an unchanged number of packages.
 */
const STATS_MS = 5 * 60_000;

interface Health {
  status: 'ok' | 'initializing' | 'unavailable' | 'unreachable';
  total_packages: number;
}

const UNREACHABLE: Health = { status: 'unreachable', total_packages: 0 };

interface Stats {
  /** The snapshot's id. */
  id: string | null;
  total: number;
  source: string;
  nameRule: NameRule;
  takenAt: Date | undefined;
  /** Change counts since the previous snapshot; undefined if the snapshot was not compared with another. */
  changes: ChangeCounts | undefined;
}

const WORDS: Record<Health['status'], string> = {
  ok: 'healthy',
  initializing: 'loading its first snapshot',
  unavailable: 'unavailable: its search engine does not respond',
  unreachable: 'unreachable',
};

const UNITS: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number])[] = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];

/** Shows the number of packages, the registry, the age of the snapshot, and the state of the service. */
export class SnapshotBar {
  readonly #bar = byId('snapshot');
  #health = UNREACHABLE;
  /** The last result of `/stats`. */
  #stats: Stats | undefined;
  /** When `/stats` was last requested, in milliseconds since the epoch. */
  #requestedAt = 0;
  /** The request of `/stats` in flight. */
  #refreshing: Promise<void> | undefined;

  /** @param onNameRule called when `nameRule` changes. */
  constructor(private readonly onNameRule: () => void) {}

  /** The rule by which the service compares names; `exact` until it is known. */
  get nameRule(): NameRule {
    return this.#stats?.nameRule ?? 'exact';
  }

  /** The number of packages; undefined if unknown. */
  get total(): number | undefined {
    return this.#health.status === 'ok' ? this.#health.total_packages : undefined;
  }

  /** Polls the service every 15 seconds while the page is visible. Resolves after the first poll. */
  watch(): Promise<void> {
    setInterval(() => {
      if (!document.hidden) void this.#poll();
    }, CHECK_MS);
    return this.#poll();
  }

  /** The change counts of the snapshot with this id; undefined if unknown. */
  async changesOf(id: string): Promise<ChangeCounts | undefined> {
    if (this.#stats?.id !== id) await this.#refreshStats();
    return this.#stats?.id === id ? this.#stats.changes : undefined;
  }

  async #poll(): Promise<void> {
    this.#health = await askHealth();
    this.#show();
    // `/health` has no rate limit, but `/stats` has one. `/stats` is therefore requested only if the number of packages
    // has changed, or after `STATS_MS`. The result is not awaited.
    const isDue = this.total !== this.#stats?.total || Date.now() - this.#requestedAt >= STATS_MS;
    if (this.total !== undefined && isDue) void this.#refreshStats();
  }

  #refreshStats(): Promise<void> {
    this.#refreshing ??= this.#requestStats().finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  async #requestStats(): Promise<void> {
    this.#requestedAt = Date.now();
    const result = await fetchJson('stats', isStats);
    if ('error' in result) return;
    const { body, headers } = result;
    const { nameRule: before } = this;
    const takenAt = new Date(headers.get('Last-Modified') ?? '');
    this.#stats = {
      id: headers.get('X-Snapshot'),
      // The only member with a count is the number of packages. Its name depends on the registry.
      total: Object.values(body).find(isCount) ?? 0,
      source: body.source,
      nameRule: NAME_RULES.find((rule) => rule === body['name_rule']) ?? 'exact',
      takenAt: Number.isNaN(takenAt.getTime()) ? undefined : takenAt,
      changes: changeCounts(headers),
    };
    this.#show();
    if (this.nameRule !== before) this.onNameRule();
  }

  #show(): void {
    const { status } = this.#health;
    const parts: (Node | string)[] = [];
    if (this.#stats !== undefined) {
      const { total, source, takenAt, changes } = this.#stats;
      parts.push(pluralize(total, 'package'), element('span', {}, 'of ', websiteOf(source)));
      if (takenAt !== undefined) parts.push(element('span', {}, 'snapshot taken ', ageOf(takenAt)));
      if (changes !== undefined) parts.push(linkToChanges(changes));
    }
    parts.push(element('span', { class: `health ${status}` }, `The service is ${WORDS[status]}`));
    // Unchanged items stay in place: one of them may be focused.
    const shown = [...this.#bar.children];
    parts.forEach((part, i) => {
      const item = element('span', {}, part);
      if (shown[i] === undefined) this.#bar.append(item);
      else if (!shown[i].isEqualNode(item)) shown[i].replaceWith(item);
    });
    for (const item of shown.slice(parts.length)) item.remove();
  }
}

/**
 * The body of `/health`. It has the same members with status 200 and 503. For any other response, such as a proxy's,
 * the result is `UNREACHABLE`.
 */
async function askHealth(): Promise<Health> {
  try {
    const body = await withDeadline<unknown>(CHECK_MS, undefined, async (signal) => {
      const response = await fetch('health', { signal });
      return response.json();
    });
    return isHealth(body) ? body : UNREACHABLE;
  } catch {
    return UNREACHABLE;
  }
}

function isHealth(body: unknown): body is Health {
  return isObject(body) && Object.hasOwn(WORDS, String(body['status'])) && isCount(body['total_packages']);
}

function isStats(body: unknown): body is Record<string, unknown> & { source: string } {
  return isObject(body) && typeof body['source'] === 'string' && Object.values(body).some(isCount);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** The source is the host of a website, unless the operator has configured a different text. */
function websiteOf(source: string): Node | string {
  const isHost = /^[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?$/i.test(source);
  return isHost ? element('a', { href: `https://${source}/`, rel: 'noopener' }, source) : source;
}

/** Shows `+123 −45`, with full words for screen readers. */
function linkToChanges(counts: ChangeCounts): HTMLElement {
  const label = `${describeCounts(counts)} since the previous snapshot`;
  const text = `+${formatNumber(counts.added)} \u2212${formatNumber(counts.removed)}`;
  const address = toUrl({ changes: true });
  return element(
    'a',
    { href: address, 'data-within': '' },
    element('span', { 'aria-hidden': 'true', title: label }, text),
    element('span', { class: 'unseen' }, label),
  );
}

function ageOf(time: Date): HTMLElement {
  const seconds = (Date.now() - time.getTime()) / 1000;
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? (['minute', 60] as const);
  const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(
    -Math.floor(seconds / length),
    unit,
  );
  return element('time', { datetime: time.toISOString(), title: time.toLocaleString('en') }, words);
}
