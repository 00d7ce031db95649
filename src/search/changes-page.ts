import type { RunSearches } from './tiered-search.js';
import {
  decodeRecord,
  nameOf,
  netChange,
  type Change,
  type ChangeRecord,
} from '../snapshot/change-record.js';
import type { NameFilter } from './name-filter.js';
import { changesInNameOrder } from './queries.js';

/** Maximum number of searches for one page. A search may yield few changes if many records cancel each other. */
const MAX_SEARCHES = 4;

export interface ChangesQuery {
  /** Ids of the snapshots whose records are combined, oldest first. */
  snapshots: readonly string[];
  /** Whether a different package number is a change. */
  hasPackageNo: boolean;
  limit: number;
  /** The last name of the previous page. */
  after: string | undefined;
  /** Selects the names; without it, all names are included. A filter selects all records of a name, or none. */
  filter?: NameFilter | undefined;
}

export interface ChangesPage {
  changes: Change[];
  /** The last name that was considered; undefined if no more changes follow. */
  next: string | undefined;
}

/**
 * Elasticsearch sorts the records of all snapshots together, so the records of one name are adjacent. If many records
 * cancel each other, a page may have fewer changes than `limit` although more follow.
 */
export async function readChanges(
  run: RunSearches,
  { snapshots, hasPackageNo, limit, after, filter }: ChangesQuery,
): Promise<ChangesPage> {
  const changes: Change[] = [];
  let last = after;
  for (let search = 0; search < MAX_SEARCHES; search++) {
    // A name has at most one record per snapshot, so the hits include all records of at least one name.
    const size = limit - changes.length + snapshots.length;
    const [hits] = await run([changesInNameOrder(size, last, filter)]);
    const records = (hits?.entries ?? []).map(decodeRecord);
    const isLast = records.length < size;
    const groups = groupByName(records);
    // More records of the last name may follow.
    const whole = isLast ? groups : groups.slice(0, -1);
    for (const [i, group] of whole.entries()) {
      group.sort((one, other) => snapshots.indexOf(one.snapshot) - snapshots.indexOf(other.snapshot));
      const change = netChange(group, hasPackageNo);
      if (change !== undefined) changes.push(change);
      last = nameOf(group[0] as ChangeRecord);
      const isEnd = isLast && i === whole.length - 1;
      if (changes.length === limit && !isEnd) return { changes, next: last };
    }
    if (isLast) return { changes, next: undefined };
  }
  return { changes, next: last };
}

function groupByName(records: readonly ChangeRecord[]): ChangeRecord[][] {
  const groups: ChangeRecord[][] = [];
  let name: string | undefined;
  for (const record of records) {
    if (nameOf(record) === name) groups.at(-1)?.push(record);
    else groups.push([record]);
    name = nameOf(record);
  }
  return groups;
}
