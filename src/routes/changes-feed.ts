import { createHash } from 'node:crypto';
import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { escapeXml, xmlResponse } from '../http/response/response.js';
import type { SnapshotRead } from '../read/snapshot-read.js';
import type { Addition, Catalog } from '../search/catalog.js';
import { filterQuery, type NameFilter } from '../search/name-filter.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { builtAt } from '../snapshot/index-names.js';
import { assertFilterApplies, nameFilterParams, parseNameFilter } from './name-filter-params.js';

const MAX_ENTRIES = 100;

const CONTENT_TYPE = 'application/atom+xml';

/** Characters that a URL (WHATWG) may have but an IRI (RFC 3987) may not, except brackets in the host and one `#`. */
const NOT_IRI = /%(?![\da-f]{2})|[[\]\\^`{|}#]/gi;

export const changesFeedOperation: Operation = {
  id: 'getChangesFeed',
  tag: 'Snapshot',
  summary: 'The newest added packages, for feed readers',
  description: `An Atom feed (RFC 4287) of recorded changes: up to ${MAX_ENTRIES} packages, newest first.`,
  params: nameFilterParams,
  response: {
    description: 'The feed.',
    contentType: CONTENT_TYPE,
    schema: z.string(),
    example: '<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"></feed>',
    headers: ['X-Snapshot'],
  },
  problems: ['invalid_parameter', 'initializing', 'search_unavailable'],
};

/** The feed is always read from the current snapshot. */
type FeedQuery = { filter: NameFilter | undefined; snapshot?: undefined };

/** `GET /changes.atom?q=&match=&like=`: the newest added packages, as an Atom feed. */
export function changesFeed(catalog: Catalog, slug: string): SnapshotRead<FeedQuery> {
  return {
    parse: parseNameFilter,
    key: ({ filter }) => addressOf(filter),
    async search({ filter }, snapshot, requestId) {
      assertFilterApplies(filter, snapshot);
      const additions = await catalog.additions(snapshot, MAX_ENTRIES, filter, requestId);
      return xmlResponse(feedOf(slug, snapshot, additions, filter), CONTENT_TYPE);
    },
  };
}

/** The URL of the feed. It is relative, because a proxy may add a path prefix. */
function addressOf(filter: NameFilter | undefined): string {
  return filter === undefined ? 'changes.atom' : `changes.atom?${filterQuery(filter)}`;
}

function describe(filter: NameFilter | undefined): string {
  if (filter === undefined) return '';
  if ('like' in filter) return ` with a name like “${filter.like}”`;
  const { q, match } = filter;
  if (match === 'exact') return ` named “${q}”`;
  if (match === 'words') return ` with all words of “${q}” in the name`;
  return match === 'prefix' ? ` whose name starts with “${q}”` : ` with “${q}” in the name`;
}

function feedOf(
  slug: string,
  { id: newest, meta }: Snapshot,
  additions: readonly Addition[],
  filter: NameFilter | undefined,
): string {
  const address = addressOf(filter);
  const entries = additions.map(
    // The id of an entry changes only if the package is removed and added again.
    ({ snapshot: id, entry }) => `
  <entry>
    <id>${uuidUrn(`${slug} ${id} ${entry.name}`)}</id>
    <title>${escapeXml(`${entry.name} ${entry.version}`)}</title>
    <link href="${escapeXml(iriOf(entry.url))}"/>
    <updated>${dateOf(id)}</updated>
  </entry>`,
  );
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <id>${uuidUrn(filter === undefined ? slug : `${slug} ${address}`)}</id>
  <title>${escapeXml(`New packages of ${meta.source}${describe(filter)}`)}</title>
  <author><name>${escapeXml(meta.source)}</name></author>
  <updated>${dateOf(newest)}</updated>
  <generator>package-registry-search</generator>
  <link rel="self" href="${escapeXml(address)}"/>${entries.join('')}
</feed>
`;
}

/** When a snapshot was built. The Unix epoch, if its index was restored under a name without a date. */
function dateOf(id: string): string {
  return builtAt(id) ?? '1970-01-01T00:00:00Z';
}

/** The URL that a browser requests for a link to `url`, encoded as an IRI. */
function iriOf(url: string): string {
  const { href } = new URL(url);
  const path = href.indexOf('/', href.indexOf('//') + 2);
  const fragment = href.indexOf('#');
  return href.replace(NOT_IRI, (character, at: number) =>
    at === fragment || (at < path && character !== '%') ? character : encodeURIComponent(character),
  );
}

/** A name-based UUID of version 8 (RFC 9562): the first bits of a SHA-256. */
function uuidUrn(name: string): string {
  const bytes = createHash('sha256').update(`package-registry-search ${name}`).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return `urn:uuid:${hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')}`;
}
