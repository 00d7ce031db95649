import { fetchJson } from './api.js';
import { byId, pluralize, element } from './dom.js';

const CHECK_MS = 15_000;

interface Health {
  status: 'ok' | 'initializing' | 'unavailable' | 'unreachable';
  total_packages: number;
}

const WORDS: Record<Health['status'], string> = {
  ok: 'healthy',
  initializing: 'loading its first snapshot',
  unavailable: 'without its search engine',
  unreachable: 'out of reach',
};

const UNITS: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number])[] = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];

/** Shows what is searched: how many packages, of which registry, how old, and how the service fares. */
export class SnapshotBar {
  readonly #bar = byId('snapshot');
  #health: Health = { status: 'unreachable', total_packages: 0 };
  /** As `/stats` said, of so many packages. */
  #about: { total: number; source: string; takenAt: Date | undefined } | undefined;

  /** How many packages there are; undefined where that is not known. */
  get total(): number | undefined {
    return this.#health.status === 'ok' ? this.#health.total_packages : undefined;
  }

  /** Asks, and again every quarter of a minute while the page can be seen. Resolves when `total` is known, if it can be. */
  watch(): Promise<void> {
    setInterval(() => {
      if (!document.hidden) void this.#look();
    }, CHECK_MS);
    return this.#look();
  }

  async #look(): Promise<void> {
    this.#health = await askHealth();
    this.#show();
    // `/health` is free, `/stats` is not: it is asked only when the number tells a new snapshot. Nobody waits for it.
    if (this.total !== undefined && this.total !== this.#about?.total) void this.#learn(this.total);
  }

  async #learn(total: number): Promise<void> {
    const result = await fetchJson<{ source: string }>('stats');
    if ('error' in result) return;
    const takenAt = result.headers.get('Last-Modified');
    this.#about = {
      total,
      source: result.body.source,
      takenAt: takenAt === null ? undefined : new Date(takenAt),
    };
    this.#show();
  }

  #show(): void {
    const { status } = this.#health;
    const parts: (Node | string)[] = [];
    if (this.#about !== undefined) {
      const { total, source, takenAt } = this.#about;
      parts.push(pluralize(total, 'package'), element('span', {}, 'of ', websiteOf(source)));
      if (takenAt !== undefined) parts.push(element('span', {}, 'snapshot taken ', ageOf(takenAt)));
    }
    parts.push(element('span', { class: `health ${status}` }, `The service is ${WORDS[status]}`));
    this.#bar.replaceChildren(...parts.map((part) => element('span', {}, part)));
  }
}

/** 503 has the same shape. What is no answer of the service, such as a proxy's, means that it is out of reach. */
async function askHealth(): Promise<Health> {
  try {
    return (await (await fetch('health')).json()) as Health;
  } catch {
    return { status: 'unreachable', total_packages: 0 };
  }
}

/** The source is a website's host, unless the operator calls it otherwise. */
function websiteOf(source: string): Node | string {
  const isHost = /^[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?$/i.test(source);
  return isHost ? element('a', { href: `https://${source}/`, rel: 'noopener' }, source) : source;
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
