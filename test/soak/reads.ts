import { makeQueries } from '../fixtures/queries.js';
import { integer, pick } from '../fixtures/random.js';
import type { Snapshots, Variant } from './snapshots.js';

/** A response, as far as readers verify it. */
export interface ReadResponse {
  status: number;
  snapshot: string | undefined;
  etag: string | undefined;
  /** Absent if the proxy responded by itself. */
  requestId: string | undefined;
  retryAfter: string | undefined;
  body: string;
}

/** Whether this is the documented response while no node responds in time. */
export function isUnavailable({ status, retryAfter, body }: ReadResponse): boolean {
  return status === 503 && retryAfter !== undefined && body.includes('"code":"search_unavailable"');
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

/** A read of the JSON that follows from the variant. */
function json(endpoint: string, path: string, expected: (variant: Variant) => unknown): Read {
  return {
    endpoint,
    path,
    verify: (response, variant) => expectJson(response, expected(variant as Variant)),
  };
}

/** A read of JSON with these members. */
function having(
  endpoint: string,
  path: string,
  isRight: (body: Record<string, unknown>, variant: Variant | undefined) => boolean,
): Read {
  return {
    endpoint,
    path,
    verify: ({ body }, variant) =>
      isRight(JSON.parse(body) as Record<string, unknown>, variant) ? undefined : 'unexpected members',
  };
}

/** Makes an endless stream of reads of every endpoint, in proportions like those of real traffic. */
export function readMaker(random: () => number, snapshots: Snapshots, slug: string): () => Read {
  const [first] = snapshots.variants as [Variant, ...Variant[]];
  const names = first.byNumber.map(({ name }) => name);
  const queries = makeQueries(names, QUERIES_PER_KIND).map(({ q }) => q.trim());
  const hot = queries.slice(0, HOT);
  const totals = new Set(snapshots.variants.map(({ byNumber }) => byNumber.length));
  const etags = new Map<string, { etag: string; body: string }>();

  const search = (endpoint: string, q: string, limit: number) =>
    json(endpoint, `/search?q=${encodeURIComponent(q)}&limit=${limit}`, (variant) => {
      const results = variant.search(q).slice(0, limit);
      return { query: q, count: results.length, results };
    });
  const browse = (endpoint: string, page: number, limit: number) =>
    json(endpoint, `/browse?page=${page}&limit=${limit}`, ({ byNumber }) => {
      return { page, limit, results: byNumber.slice((page - 1) * limit, page * limit) };
    });
  /** A hot search that repeats the last `ETag` and must get the same body, or 304. */
  const revalidated = (): Read => {
    const plain = search('/search, revalidated', pick(random, hot), 25);
    const held = etags.get(plain.path);
    return {
      ...plain,
      statuses: [200, 304],
      headers: held === undefined ? {} : { 'if-none-match': held.etag },
      verify: (response, variant) => {
        if (response.status === 200) {
          if (response.etag !== undefined)
            etags.set(plain.path, { etag: response.etag, body: response.body });
          return plain.verify(response, variant);
        }
        if (held === undefined || response.etag !== held.etag) return 'a 304 with another ETag';
        return plain.verify({ ...response, body: held.body }, variant);
      },
    };
  };
  const nameOrNone = () => (random() < 0.9 ? pick(random, names) : `${pick(random, names)}~`);
  const lookup = () => {
    const asked = Array.from({ length: integer(random, 1, 20) }, nameOrNone);
    const query = asked.map((name) => `name=${encodeURIComponent(name)}`).join('&');
    return json('/lookup', `/lookup?${query}`, ({ byName }) => {
      const results = asked.map((name) => ({ name, package: byName.get(name) ?? null }));
      return { count: results.filter((result) => result.package !== null).length, results };
    });
  };
  const byName = (): Read => {
    const name = nameOrNone();
    return {
      endpoint: '/packages',
      path: `/packages/${encodeURIComponent(name)}`,
      statuses: [200, 404],
      verify: (response, variant) => {
        const entry = variant?.byName.get(name);
        if (entry !== undefined) return expectJson(response, entry);
        return response.status === 404 ? undefined : 'expected 404';
      },
    };
  };
  const similar = () => {
    const name = pick(random, names);
    const text = random() < 0.5 ? name : `${name.slice(0, -1)}${name.at(-1) === 'x' ? 'y' : 'x'}`;
    return json('/similar', `/similar?name=${encodeURIComponent(text)}&limit=10`, (variant) => {
      const results = variant.similar(text).slice(0, 10);
      return { name: text, count: results.length, results };
    });
  };
  const changes: Read = {
    endpoint: '/changes',
    path: '/changes?limit=1000',
    verify: (response) => {
      const { from, to } = JSON.parse(response.body) as { from: string; to: string };
      if (to !== response.snapshot) return '`to` differs from X-Snapshot';
      if (from !== to && snapshots.get(from) === undefined) return 'the snapshot `from` is unknown';
      const results = from === to ? [] : snapshots.changes(from, to);
      return expectJson(response, { from, to, count: results.length, results });
    },
  };
  const feed: Read = {
    endpoint: '/changes.atom',
    path: '/changes.atom',
    verify: ({ body }) =>
      body.startsWith('<?xml') && body.trimEnd().endsWith('</feed>') ? undefined : 'not a complete feed',
  };
  const stats = having(
    '/stats',
    '/stats',
    (body, variant) => body[`total_${slug}_packages`] === variant?.byNumber.length,
  );
  const health = having(
    '/health',
    '/health',
    ({ status, total_packages }) => status === 'ok' && totals.has(total_packages as number),
  );
  const ping = json('/ping', '/ping', () => ({ ping: 'pong' }));
  const constants = ['/', '/docs', '/openapi.json'].map((endpoint): Read => {
    let expected: string | undefined;
    return {
      endpoint,
      path: endpoint,
      verify: ({ body }) => {
        expected ??= body;
        return body === expected ? undefined : 'the body changed';
      },
    };
  });

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
    [2, () => pick(random, constants)],
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
