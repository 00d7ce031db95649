import { isDeepStrictEqual } from 'node:util';
import type { ChangeResult } from '../fixtures/changes-oracle.js';
import { pick } from '../fixtures/random.js';
import { readMaker, type Read, type ReadResponse } from '../soak/reads.js';
import type { Snapshots, Variant } from '../soak/snapshots.js';
import { linksOf } from '../support/follow-next.js';

/** What these endpoints return depends on the version, and not on the snapshot. */
const OF_VERSION = ['/', '/docs', '/openapi.json'];

/** Clients that read page by page, each one request at a time, and their share of all reads. */
const WALKERS = 20;
const SHARE_OF_WALKS = 0.2;

/** Endless reads of every endpoint that both versions have, and walks through lists by `next`. */
export class UpgradeReads {
  readonly #make: () => Read;
  readonly #walks: Walk[];

  constructor(
    private readonly random: () => number,
    private readonly snapshots: Snapshots,
    options: Parameters<typeof readMaker>[2],
  ) {
    this.#make = readMaker(random, snapshots, options);
    this.#walks = Array.from({ length: WALKERS }, (_, i) => {
      if (i % 2 === 0) return new Walk('/browse?limit=400', ({ byNumber }) => byNumber);
      const q = pick(random, ['in', 'er', 'ab']);
      return new Walk(`/search?q=${q}&limit=60`, (variant) => variant.search(q));
    });
  }

  next(): Read {
    if (this.random() < SHARE_OF_WALKS) {
      const walk = this.#walks.find(({ isWaiting }) => !isWaiting);
      if (walk !== undefined) return walk.next();
    }
    const read = this.#make();
    if (read.endpoint === '/changes') return this.#changes(read);
    return OF_VERSION.includes(read.endpoint) ? { ...read, verify: () => undefined } : read;
  }

  /** Walks that reached the last page. */
  get completedWalks(): number {
    return this.#walks.reduce((sum, { completed }) => sum + completed, 0);
  }

  /** Walks that ended with the documented 410, because their snapshot was gone after two flips. */
  get goneWalks(): number {
    return this.#walks.reduce((sum, { gone }) => sum + gone, 0);
  }

  #changes(read: Read): Read {
    return {
      ...read,
      verify: ({ body, snapshot }) => {
        const { from, to, results } = JSON.parse(body) as Record<'from' | 'to', string> & {
          results: ChangeResult[];
        };
        if (to !== snapshot) return '`to` differs from X-Snapshot';
        const expected = from === to ? [] : this.snapshots.changes(from, to);
        const isRight = [expected, expected.map(asInPreviousVersion)].some((one) =>
          isDeepStrictEqual(results, one),
        );
        return isRight ? undefined : `expected ${JSON.stringify(expected).slice(0, 300)}`;
      },
    };
  }
}

/** A result of `/changes` as 0.2.0 returns it. */
export function asInPreviousVersion({ change, no, name, version, url }: ChangeResult): ChangeResult {
  return { change, no, name, version, url };
}

/** A client that follows `next` from the first page to the last, over and over. */
class Walk {
  completed = 0;
  gone = 0;
  /** Whether it waits for a page. */
  isWaiting = false;
  #path: string;
  /** The snapshot that the walk began with; undefined on the first page. */
  #snapshot: string | undefined;
  #seen = 0;

  constructor(
    private readonly first: string,
    private readonly all: (variant: Variant) => readonly unknown[],
  ) {
    this.#path = first;
  }

  next(): Read {
    this.isWaiting = true;
    const [endpoint = ''] = this.first.split('?');
    return {
      endpoint: `${endpoint}, by next`,
      path: this.#path,
      statuses: this.#snapshot === undefined ? [200] : [200, 410],
      verify: (response, variant) => {
        this.isWaiting = false;
        return this.#verify(response, variant, endpoint);
      },
    };
  }

  #verify({ status, body, link, snapshot }: ReadResponse, variant: Variant | undefined, endpoint: string) {
    if (status === 410) {
      this.gone++;
      this.#begin();
      return body.includes('"snapshot_gone"') ? undefined : 'another 410';
    }
    if (snapshot !== (this.#snapshot ?? snapshot)) return `another snapshot than ${this.#snapshot}`;
    this.#snapshot = snapshot;
    const all = this.all(variant as Variant);
    const { results } = JSON.parse(body) as { results: unknown[] };
    const expected = all.slice(this.#seen, this.#seen + results.length);
    if (!isDeepStrictEqual(results, expected)) return `expected entries from ${this.#seen} on`;
    this.#seen += results.length;
    const { next } = linksOf({ headers: new Headers(link === undefined ? {} : { Link: link }) });
    if (next !== undefined) {
      this.#path = endpoint + next;
      return undefined;
    }
    const missed = all.length - this.#seen;
    this.completed++;
    this.#begin();
    return missed === 0 ? undefined : `the walk ended ${missed} entries too early`;
  }

  #begin(): void {
    this.#path = this.first;
    this.#snapshot = undefined;
    this.#seen = 0;
  }
}
