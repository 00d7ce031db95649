import { makeQueries } from '../../fixtures/queries.js';
import { integer, pick } from '../../fixtures/random.js';
import type { Snapshots, Variant } from './snapshots.js';

/** A response, as far as readers verify it. */
export interface ReadResponse {
  status: number;
  snapshot: string | undefined;
  etag: string | undefined;
  /** Absent if the proxy responded by itself. */
  requestId: string | undefined;
  body: string;
}

/** One request, and what it must return. */
export interface Read {
  /** Name of the endpoint in the report; cached and uncached requests have separate names. */
  endpoint: string;
  path: string;
  headers?: Record<string, string>;
  /** Statuses that are good; 200 by default. */
  statuses?: readonly number[];
  /**
   * Returns what is wrong with a response, or undefined. Called once the snapshot in `X-Snapshot` is known; responses
   * without this header have no `variant`.
   */
  verify(response: ReadResponse, variant: Variant | undefined): string | undefined;
}

/** Paths that are requested over and over, so that they are mostly cached. */
const HOT = 40;
/** Queries that others are derived from. */
const QUERIES_PER_KIND = 400;

/** The last page of `/browse` that is requested. With many of the limits it is past the end. */
const LAST_PAGE = 80;

/** Compares a body with the expected JSON, members in order. White space may differ: entries are padded. */
function expectJson({ body }: ReadResponse, expected: unknown): string | undefined {
  const text = JSON.stringify(expected);
  return JSON.stringify(JSON.parse(body)) === text ? undefined : `expected ${text.slice(0, 300)}`;
}

/** Makes an endless stream of reads of every endpoint, in proportions like those of real traffic. */
export function readMaker(
  random: () => number,
  snapshots: Snapshots,
  { slug, bypassSecret }: { slug: string; bypassSecret: string },
): () => Read {
  const [first] = snapshots.variants as [Variant, ...Variant[]];
  const names = first.byNumber.map(({ name }) => name);
  const queries = makeQueries(names, QUERIES_PER_KIND).map(({ q }) => q.trim());
  const hot = queries.slice(0, HOT);
  const totals = new Set(snapshots.variants.map(({ byNumber }) => byNumber.length));
  const etags = new Map<string, { etag: string; body: string }>();

  const search = (endpoint: string, q: string, limit: number): Read => ({
    endpoint,
    path: `/search?q=${encodeURIComponent(q)}&limit=${limit}`,
    verify: (response, variant) => {
      const results = (variant as Variant).search(q).slice(0, limit);
      return expectJson(response, { query: q, count: results.length, results });
    },
  });
  const browse = (endpoint: string, page: number, limit: number): Read => ({
    endpoint,
    path: `/browse?page=${page}&limit=${limit}`,
    verify: (response, variant) => {
      const results = (variant as Variant).byNumber.slice((page - 1) * limit, page * limit);
      return expectJson(response, { page, limit, results });
    },
  });
  /** A hot search that repeats the last `ETag` and must get the same body, or 304. */
  const revalidated = (): Read => {
    const q = pick(random, hot);
    const plain = search('/search, revalidated', q, 25);
    const held = etags.get(plain.path);
    return {
      ...plain,
      statuses: [200, 304],
      headers: held === undefined ? {} : { 'if-none-match': held.etag },
      verify: (response, variant) => {
        if (response.status === 200 && response.etag !== undefined) {
          etags.set(plain.path, { etag: response.etag, body: response.body });
        }
        if (response.status === 200) return plain.verify(response, variant);
        if (held === undefined || response.etag !== held.etag) return 'a 304 with another ETag';
        return plain.verify({ ...response, body: held.body }, variant);
      },
    };
  };
  const lookup = (): Read => {
    const asked = Array.from({ length: integer(random, 1, 20) }, () => nameOrNone());
    return {
      endpoint: '/lookup',
      path: `/lookup?${asked.map((name) => `name=${encodeURIComponent(name)}`).join('&')}`,
      verify: (response, variant) => {
        const { byName } = variant as Variant;
        const results = asked.map((name) => ({ name, package: byName.get(name) ?? null }));
        const count = results.filter((result) => result.package !== null).length;
        return expectJson(response, { count, results });
      },
    };
  };
  const nameOrNone = () => (random() < 0.9 ? pick(random, names) : `${pick(random, names)}~`);
  const byName = (): Read => {
    const name = nameOrNone();
    return {
      endpoint: '/packages',
      path: `/packages/${encodeURIComponent(name)}`,
      statuses: [200, 404],
      verify: (response, variant) => {
        const entry = (variant as Variant).byName.get(name);
        if (entry !== undefined) return expectJson(response, entry);
        return response.status === 404 ? undefined : 'expected 404';
      },
    };
  };
  const similar = (): Read => {
    const name = pick(random, names);
    const text = random() < 0.5 ? name : `${name.slice(0, -1)}${name.at(-1) === 'x' ? 'y' : 'x'}`;
    return {
      endpoint: '/similar',
      path: `/similar?name=${encodeURIComponent(text)}&limit=10`,
      verify: (response, variant) => {
        const results = (variant as Variant).similar(text).slice(0, 10);
        return expectJson(response, { name: text, count: results.length, results });
      },
    };
  };
  const changes: Read = {
    endpoint: '/changes',
    path: '/changes?limit=1000',
    verify: (response) => {
      const body = JSON.parse(response.body) as { from: string; to: string; count: number };
      const { from, to } = body;
      if (to !== response.snapshot) return '`to` differs from X-Snapshot';
      if (from !== to && snapshots.get(from) === undefined) return 'the snapshot `from` is unknown';
      const results = from === to ? [] : snapshots.changes(from, to);
      return expectJson(response, { from, to, count: results.length, results });
    },
  };
  const stats: Read = {
    endpoint: '/stats',
    path: '/stats',
    verify: ({ body }, variant) => {
      const total = (JSON.parse(body) as Record<string, unknown>)[`total_${slug}_packages`];
      const expected = (variant as Variant).byNumber.length;
      return total === expected ? undefined : `expected ${expected} packages`;
    },
  };
  const feed: Read = {
    endpoint: '/changes.atom',
    path: '/changes.atom',
    verify: ({ body }) =>
      body.startsWith('<?xml') && body.trimEnd().endsWith('</feed>') ? undefined : 'not a complete feed',
  };
  const health: Read = {
    endpoint: '/health',
    path: '/health',
    verify: ({ body }) => {
      const { status, total_packages } = JSON.parse(body) as { status: string; total_packages: number };
      return status === 'ok' && totals.has(total_packages) ? undefined : 'unexpected total';
    },
  };
  const constant = (endpoint: string): Read => {
    let expected: string | undefined;
    return {
      endpoint,
      path: endpoint,
      verify: ({ body }) => {
        expected ??= body;
        return body === expected ? undefined : 'the body changed';
      },
    };
  };
  const secret = (): Read => ({
    endpoint: '/get-bypass',
    path: `/get-bypass?secret=${bypassSecret}`,
    verify: ({ body }) =>
      typeof (JSON.parse(body) as { bypass_token?: unknown }).bypass_token === 'string'
        ? undefined
        : 'no token',
  });
  const ip: Read = {
    endpoint: '/debug-ip',
    path: '/debug-ip',
    verify: ({ body }) =>
      (JSON.parse(body) as { limit_key?: string }).limit_key?.startsWith('127.0.1.') === true
        ? undefined
        : 'unexpected address',
  };
  const ping: Read = {
    endpoint: '/ping',
    path: '/ping',
    verify: (response) => expectJson(response, { ping: 'pong' }),
  };
  const constants = ['/', '/docs', '/openapi.json'].map(constant);

  const weighted: [weight: number, make: () => Read][] = [
    [30, () => search('/search, cached', pick(random, hot), 25)],
    [18, () => search('/search, uncached', pick(random, queries), integer(random, 1, 500))],
    [6, revalidated],
    [6, () => browse('/browse, cached', integer(random, 1, 5), 50)],
    [6, () => browse('/browse, uncached', integer(random, 1, LAST_PAGE), integer(random, 1, 200))],
    [8, byName],
    [5, lookup],
    [4, similar],
    [3, () => changes],
    [1, () => feed],
    [4, () => stats],
    [3, () => health],
    [3, () => ping],
    [1.9, () => pick(random, constants)],
    [0.05, () => ip],
    [0.05, secret],
  ];
  const total = weighted.reduce((sum, [weight]) => sum + weight, 0);
  return () => {
    let at = random() * total;
    for (const [weight, make] of weighted) {
      at -= weight;
      if (at < 0) return make();
    }
    return ping;
  };
}
