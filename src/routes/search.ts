import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import { invalidParameter, memoized, parseParams } from '../http/request/query-params.js';
import { bodyResponse, linkHeader } from '../http/response/response.js';
import type { SnapshotRead } from '../read/snapshot-read.js';
import type { Catalog } from '../search/catalog.js';
import type { Match } from '../search/name-filter.js';
import { decodeCursor, encodeCursor, type Cursor } from '../search/cursor.js';
import { writeResponseBody } from '../snapshot/package-document.js';
import { cursorAfter, MAX_TOTAL, type SearchResults } from '../search/tiered-search.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { isLongEnough, MAX_WORDS, MIN_LENGTH, wordsOf } from '../util/typed-text.js';
import {
  flagParam,
  limitParam,
  matchParam,
  MAX_LIMIT,
  PACKAGE_EXAMPLE,
  packageSchema,
  READ_PROBLEMS,
  snapshotParam,
  sortParam,
  trimmedText,
} from './schemas.js';

/** Maximum length of a trimmed query, in code points. */
export const MAX_LENGTH = 100;

export const queryText = trimmedText(MIN_LENGTH, MAX_LENGTH).meta({ id: 'Query' });

export const searchParams = z.object({
  q: queryText.meta({
    description: `Part of a name, ${MIN_LENGTH} to ${MAX_LENGTH} characters after trimming. Case is ignored.`,
    examples: ['redis'],
  }),
  limit: limitParam(250),
  sort: sortParam('rank'),
  snapshot: snapshotParam,
  after: z.string().optional().meta({
    description: 'The cursor in the `next` link of the previous page, for the same `q`, `match` and `sort`.',
  }),
  // New parameters come last, because some generated clients pass parameters by position.
  match: matchParam,
  total: flagParam.meta({ description: `Count all matches, up to ${MAX_TOTAL}. Not with \`after\`.` }),
});

const resultSchema = packageSchema.extend({ rank: z.int().min(0).max(2) }).meta({ id: 'SearchResult' });

export const searchOperation: Operation = {
  id: 'searchPackages',
  tag: 'Search',
  summary: 'Packages whose name contains the query',
  description: 'Results are sorted by `rank`, then by weight if `sort` is `weight`, then in name order.',
  params: searchParams,
  response: {
    description: 'One page of matches, best rank first.',
    schema: component('SearchPage', {
      query: z.string(),
      count: z.int().min(0).max(MAX_LIMIT),
      total: z
        .int()
        .min(0)
        .max(MAX_TOTAL)
        .optional()
        .meta({ description: 'All matches; only with `total=true`.' }),
      total_is_exact: z.boolean().optional().meta({ description: 'False if there are more than `total`.' }),
      results: z.array(resultSchema).max(MAX_LIMIT),
    }),
    example: { query: 'redis-', count: 1, results: [{ ...PACKAGE_EXAMPLE, rank: 1 }] },
    headers: ['X-Snapshot', 'X-Results-Truncated', 'Link'],
  },
  problems: READ_PROBLEMS,
};

/** @throws {Problem} 400 if a query or one of its words is too short for a snapshot, or if there are too many words. */
export function assertSearchable(q: string, match: Match, { meta: { name_rule: rule } }: Snapshot): void {
  const words = match === 'words' ? wordsOf(q) : [q];
  if (words.length > MAX_WORDS) throw invalidParameter('q', `must have at most ${MAX_WORDS} words`);
  if (words.every((word) => isLongEnough(word, rule))) return;
  const where = `${match === 'words' ? 'in each word ' : ''}where names are compared (${rule})`;
  throw invalidParameter('q', `must have at least ${MIN_LENGTH} characters ${where}`);
}

/** `GET /search?q=&limit=&match=&sort=`: names that match the query, sorted by rank, then by name or by weight. */
export function search(catalog: Catalog): SnapshotRead<SearchQuery> {
  return {
    parse: memoized((querystring) => {
      const { after: cursor, ...query } = parseParams(searchParams, querystring);
      if (cursor === undefined) return query;
      if (query.total === 'true') throw invalidParameter('total', 'must not be true with after');
      const after = decodeCursor(cursorKey(query), cursor, query.sort === 'weight');
      if (after === undefined) {
        throw invalidParameter('after', 'must be from a next link with the same q, match and sort');
      }
      return { ...query, cursor, after };
    }),
    key: ({ q, limit, match, sort = 'name', total, cursor = '' }) =>
      `search ${sort} ${match} ${total} ${cursor} ${limit} ${q}`,
    async search({ q, limit, match, sort, total, after }, snapshot, requestId) {
      assertSearchable(q, match, snapshot);
      const byWeight = sort === 'weight';
      const query = { q, limit, match, after, byWeight, isCounted: total === 'true' };
      const results = await catalog.search(snapshot, query, requestId);
      const { groups, count, truncated } = results;
      const before = `{"query":${JSON.stringify(q)},"count":${count},${totalMembers(results)}"results":[`;
      const body = writeResponseBody(before, groups);
      if (!truncated) return bodyResponse(body);
      const matching = match === 'contains' ? {} : { match };
      const order = byWeight ? { sort } : {};
      const cursor = encodeCursor(cursorKey({ q, match }), cursorAfter(results, query));
      const next = { q, limit, ...matching, ...order, snapshot: snapshot.id, after: cursor };
      return bodyResponse(body, { 'X-Results-Truncated': 'true', ...linkHeader({ next }) });
    },
  };
}

/** `cursor` is the text of the parameter `after`, and `after` is the decoded cursor: the end of the previous page. */
type SearchQuery = Omit<z.output<typeof searchParams>, 'after'> & {
  cursor?: string;
  after?: Cursor;
};

function totalMembers({ total }: SearchResults): string {
  if (total === undefined) return '';
  return `"total":${Math.min(total, MAX_TOTAL)},"total_is_exact":${total <= MAX_TOTAL},`;
}

/** The text that a cursor is bound to: the query and `match`. It is unambiguous: no query begins with a space. */
function cursorKey({ q, match }: Pick<SearchQuery, 'q' | 'match'>): string {
  return match === 'contains' ? q : ` ${match} ${q}`;
}
