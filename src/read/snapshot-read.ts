import { IndexGoneError } from '../elasticsearch/elasticsearch-errors.js';
import { etagOf, matches } from '../http/response/etag.js';
import { encodingFor } from '../http/response/compression.js';
import type { Context, Handler } from '../http/request/request-context.js';
import type { BodyResponse } from '../http/response/response.js';
import type { ResponseCache } from './response-cache.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { SnapshotGoneError } from '../snapshot/snapshot-watcher.js';
import type { Catalog } from '../search/catalog.js';

/** RFC 5861: stale for 5 minutes during revalidation, and for a day while the service is down or responds with 5xx. */
const CACHE_CONTROL = 'public, max-age=30, stale-while-revalidate=300, stale-if-error=86400';

export interface SnapshotQuery {
  /** The snapshot that the client chose. */
  snapshot?: string | undefined;
}

/** The steps of a read that differ between endpoints. The response must depend only on the request and the snapshot. */
export interface SnapshotRead<
  Query extends SnapshotQuery = SnapshotQuery,
  Source extends Snapshot = Snapshot,
> {
  /** Checks the parameters. @param url path and query as sent. */
  parse(querystring: string, url: string): Query;
  /** Selects the chain of `/changes`. By default, the snapshot that the client chose or the current one is read. */
  select?(query: Query): Promise<Source>;
  /** The normalised request. Requests with equal keys have equal responses from the same snapshot. */
  key(query: Query, source: Source): string;
  search(query: Query, source: Source, requestId: string): Promise<BodyResponse>;
}

/** What a replica knows about snapshots and their changes. */
type KnownSnapshots = Pick<Catalog, 'snapshots' | 'chains'>;

/** Returns a function that creates the handlers of reads. All handlers share the cache. */
export function snapshotReader(known: KnownSnapshots, cache: ResponseCache) {
  return function handlerOf<Query extends SnapshotQuery, Source extends Snapshot>(
    read: SnapshotRead<Query, Source>,
  ): Handler {
    const attempt = ({ req, state }: Context, query: Query, source: Source) => {
      const request = read.key(query, source);
      const key = `${source.index} ${request}`;
      const cached = cache.get(key);
      const condition = req.headers['if-none-match'];
      // A matching tag is enough for a 304, without a search: only a 200 response has this tag.
      if (condition !== undefined && condition !== '*') {
        const tag = (cached?.status === 200 && cached.headers['ETag']) || etagOf(source.index, request);
        if (matches(condition, tag)) {
          cache.counts.not_modified++;
          return { status: 304, headers: commonHeaders(source, tag) };
        }
      }
      const search = async () => {
        const { status, headers, body } = await read.search(query, source, state.requestId);
        // A problem (RFC 9457) has a different tag. A client that sends this tag gets no 304.
        const tag = etagOf(source.index, status === 200 ? request : `${status} ${request}`);
        return { status, headers: { ...headers, ...commonHeaders(source, tag) }, body };
      };
      const encodedFor = (response: BodyResponse) => {
        // `If-None-Match: *` matches any 200 response.
        if (condition === '*' && response.status === 200)
          return { status: 304, headers: commonHeaders(source, etagOf(source.index, request)) };
        const encoding = encodingFor(req.headers['accept-encoding']);
        return encoding === undefined ? response : cache.inEncoding(key, response, encoding);
      };
      if (cached === undefined) return cache.create(key, search).then(encodedFor);
      cache.counts.hit++;
      return encodedFor(cached);
    };
    return (ctx) => {
      const query = read.parse(ctx.querystring, ctx.url);
      return readAgainIfDeleted(
        known,
        query.snapshot,
        // Without `select`, a source is just a snapshot.
        () => read.select?.(query) ?? (known.snapshots.select(query.snapshot) as Source | Promise<Source>),
        (source) => attempt(ctx, query, source),
      );
    };
  };
}

/**
 * Selects a snapshot or the changes of its chain, and reads them. Selects and reads once more if an index was deleted
 * or an index of changes was closed meanwhile: the second attempt reads the new snapshot, or a shorter chain.
 * @param snapshot the id that the client chose, if any. No other snapshot can replace it.
 * @throws {SnapshotGoneError} if the chosen snapshot was deleted. Errors with other reasons are thrown unchanged.
 */
export function readAgainIfDeleted<Source, T>(
  { snapshots, chains }: KnownSnapshots,
  snapshot: string | undefined,
  select: () => Source | Promise<Source>,
  attempt: (source: Source) => T | Promise<T>,
): T | Promise<T> {
  const again = async (error: unknown): Promise<T> => {
    const isShorter = chains.shorten(error);
    if (!isShorter && !(error instanceof IndexGoneError)) throw error;
    if (snapshot === undefined) await snapshots.refresh();
    else if (!isShorter) throw new SnapshotGoneError(snapshot, 'deleted', { cause: error });
    return attempt(await select());
  };
  const source = select();
  const result = source instanceof Promise ? source.then(attempt) : attempt(source);
  // Without a promise, a cached response takes 5 % less processor time.
  return result instanceof Promise ? result.catch(again) : result;
}

/** The headers that a response and its 304 have in common. */
export function commonHeaders({ id }: Snapshot, tag: string) {
  return {
    ETag: tag,
    'X-Snapshot': id,
    'Cache-Control': CACHE_CONTROL,
    Vary: 'Accept-Encoding',
  };
}
