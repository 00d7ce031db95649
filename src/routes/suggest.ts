import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { memoized, parseParams } from '../http/request/query-params.js';
import { jsonResponse } from '../http/response/response.js';
import type { SnapshotRead } from '../read/snapshot-read.js';
import type { Catalog } from '../search/catalog.js';
import { decodeEntry } from '../snapshot/package-document.js';
import { MAX_WORDS, MIN_LENGTH, typedQuery } from '../util/typed-text.js';
import { codePoints, trimWhiteSpace } from '../util/unicode.js';
import { PACKAGE_EXAMPLE } from './schemas.js';
import { MAX_LENGTH } from './search.js';

export const SUGGESTIONS_TYPE = 'application/x-suggestions+json';

const MAX_SUGGESTIONS = 10;

/** Text that a person types, or passes to a command: `typedQuery` reduces it. */
export const typedText = z
  .string('is required')
  .refine(
    (text) => codePoints(trimWhiteSpace(text)).length <= MAX_LENGTH,
    `must have at most ${MAX_LENGTH} characters`,
  )
  .meta({
    description:
      `Part of a name, or up to ${MAX_WORDS} words: at most ${MAX_LENGTH} characters after trimming. ` +
      `Words of less than ${MIN_LENGTH} characters are left out.`,
    examples: ['redis'],
  });

const suggestParams = z.object({ q: typedText });

/** The package fields in a response. Each field has its own list. */
const LISTED = ['name', 'version', 'url'] as const;

const list = z.array(z.string()).max(MAX_SUGGESTIONS);

export const suggestOperation: Operation = {
  id: 'suggestPackages',
  tag: 'Search',
  summary: 'The most used packages whose name contains the query, for address bars',
  description:
    `The first ${MAX_SUGGESTIONS} results of \`/search?sort=weight\`, with \`match=words\` if \`q\` has several ` +
    'words, as OpenSearch suggestions.',
  params: suggestParams,
  response: {
    description: 'The query as it was sent, names, versions and URLs.',
    contentType: SUGGESTIONS_TYPE,
    // Not a tuple: some OpenAPI tools do not support `prefixItems`.
    schema: z.array(z.union([z.string(), list])).length(4),
    example: ['redis-', ...LISTED.map((field) => [PACKAGE_EXAMPLE[field]])],
    headers: ['X-Snapshot'],
  },
  problems: ['invalid_parameter', 'initializing', 'search_unavailable'],
};

/** Suggestions are always from the current snapshot. */
type SuggestQuery = z.output<typeof suggestParams> & { snapshot?: undefined };

/** `GET /suggest?q=`: the most used names that contain the query. */
export function suggest(catalog: Catalog): SnapshotRead<SuggestQuery> {
  return {
    parse: memoized((querystring) => parseParams(suggestParams, querystring)),
    key: ({ q }) => `suggest ${q}`,
    async search({ q: sent }, snapshot, requestId) {
      const typed = typedQuery(sent, snapshot.meta.name_rule);
      const query = typed && { ...typed, limit: MAX_SUGGESTIONS, byWeight: true };
      const { groups } = query ? await catalog.search(snapshot, query, requestId) : { groups: [] };
      const entries = groups.flatMap((group) => group.entries.map(decodeEntry));
      const lists = LISTED.map((field) => entries.map((entry) => entry[field]));
      // Browsers ignore suggestions if the query in the response differs from the query that they sent.
      return jsonResponse([sent, ...lists], { 'Content-Type': `${SUGGESTIONS_TYPE}; charset=utf-8` });
    },
  };
}
