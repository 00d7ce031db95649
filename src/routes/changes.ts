import * as z from 'zod';
import type { Operation } from '../http/openapi/document.js';
import { component } from '../http/openapi/components.js';
import { invalidParameter, memoized, parseParams } from '../http/request/query-params.js';
import { jsonResponse, linkHeader } from '../http/response/response.js';
import type { SnapshotRead } from '../read/snapshot-read.js';
import type { Catalog } from '../search/catalog.js';
import type { ChangesSource } from '../snapshot/chains.js';
import { CHANGES, type Change } from '../snapshot/change-record.js';
import { comparedMembers, ENTRY_SCHEMAS } from '../snapshot/package-fields.js';
import { decodeCursor, encodeCursor } from '../search/cursor.js';
import { filterParams, filterQuery, type NameFilter } from '../search/name-filter.js';
import { assertFilterApplies, nameFilterOf, nameFilterParams } from './name-filter-params.js';
import { limitParam, PACKAGE_EXAMPLE, READ_PROBLEMS, snapshotId, snapshotParam } from './schemas.js';

const DEFAULT_LIMIT = 500;
const MAX_LIMIT = 1000;

const changesParams = z.object({
  since: snapshotId.optional().meta({
    description: 'The id of a snapshot that led to the current one. Default: the previous one.',
  }),
  limit: limitParam(DEFAULT_LIMIT, MAX_LIMIT),
  snapshot: snapshotParam,
  after: z.string().optional().meta({
    description: 'The cursor in the `next` link of the previous page, for the same `since` and names.',
  }),
  ...nameFilterParams.shape,
});

const changeSchema = component('Change', {
  change: z.enum(CHANGES),
  ...comparedMembers(ENTRY_SCHEMAS),
  previous_version: z.string().min(1).optional().meta({
    description: 'Of an updated package: its version in `from`, the same if only other members differ.',
  }),
});

export const changesOperation: Operation = {
  id: 'listChanges',
  tag: 'Snapshot',
  summary: 'Changes since a snapshot',
  description:
    'Net changes, one for each name, in name order. Applied to the packages of `from`, they give ' +
    'those of `to`. A page may have fewer results than `limit` although more follow: check `Link`. The ' +
    'result for a removed package has its last entry. If the dataset has no package numbers, another `no` is ' +
    'no change.',
  params: changesParams,
  response: {
    description: 'One page of changes.',
    schema: component('ChangesPage', {
      from: snapshotId,
      to: snapshotId,
      count: z.int().min(0).max(MAX_LIMIT),
      results: z.array(changeSchema).max(MAX_LIMIT),
    }),
    example: {
      from: '20260101t030405z-0123abcd',
      to: '20260102t030405z-4567cdef',
      count: 1,
      results: [{ change: 'updated', ...PACKAGE_EXAMPLE, previous_version: '1:1.2.2-3' }],
    },
    headers: ['X-Snapshot', 'Link'],
  },
  problems: READ_PROBLEMS,
};

/** `GET /changes?since=&limit=&q=&match=&like=`: net changes between two snapshots. */
export function changes(catalog: Catalog): SnapshotRead<ChangesQuery, ChangesSource> {
  return {
    parse: memoized((querystring) => {
      const { since, limit, snapshot, after: cursor, ...names } = parseParams(changesParams, querystring);
      const filter = nameFilterOf(names);
      const after = cursor === undefined ? undefined : decodeCursor(cursorKey(since, filter), cursor)?.name;
      if (cursor !== undefined && after === undefined) {
        throw invalidParameter('after', 'must be from a next link with the same since, q, match and like');
      }
      return { since, limit, snapshot, cursor, after, filter };
    }),
    select: ({ snapshot, since }) => catalog.chains.select(snapshot, since),
    key: ({ limit, cursor = '', filter }, { chain }) =>
      withFilter(`changes ${chain.from} ${limit} ${cursor}`, filter),
    async search({ limit, after, filter }, source, requestId) {
      assertFilterApplies(filter, source);
      const { from } = source.chain;
      const to = source.id;
      const page = await catalog.changes(source, { limit, after, filter }, requestId);
      const body = { from, to, count: page.changes.length, results: page.changes.map(toResult) };
      if (page.next === undefined) return jsonResponse(body);
      // Changes have no tiers, so any tier will do.
      const cursor = encodeCursor(cursorKey(from, filter), { tier: 'startsWith', name: page.next });
      const next = { since: from, limit, ...filterParams(filter), snapshot: to, after: cursor };
      return jsonResponse(body, linkHeader({ next }));
    },
  };
}

/** The parameters. `cursor` is the text of the parameter `after`, and `after` is the name in the decoded cursor. */
type ChangesQuery = Pick<z.output<typeof changesParams>, 'since' | 'limit' | 'snapshot'> & {
  cursor: string | undefined;
  after: string | undefined;
  filter: NameFilter | undefined;
};

/** The text that a cursor is bound to. Because of the prefix, only a search for this text has cursors that fit. */
function cursorKey(since: string | undefined, filter: NameFilter | undefined): string {
  return withFilter(`changes ${since}`, filter);
}

function withFilter(text: string, filter: NameFilter | undefined): string {
  return filter === undefined ? text : `${text} ${filterQuery(filter)}`;
}

/** JSON omits the previous version where it is undefined. */
function toResult({ change, entry, previousVersion }: Change) {
  const { no, name, version, ...others } = comparedMembers(entry);
  return { change, no, name, version, previous_version: previousVersion, ...others };
}
