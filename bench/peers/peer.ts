import type { RankedEntry } from '../../fixtures/search-oracle.js';

/** A search engine with the same names as the service. */
export interface Peer {
  name: string;
  /** The same packages as `/search`, in the same order. */
  search: (q: string, limit: number) => Promise<RankedEntry[]>;
  /** Size of the names and their index on disk. */
  bytes: () => Promise<number>;
  stop: () => Promise<void>;
}

/** Placeholders of a statement for two of the values of `patterns`. */
interface Placeholders {
  literal: string;
  prefix: string;
}

/** The columns of `/search`, in SQL that SQLite and PostgreSQL share. */
export function rankedColumns({ literal, prefix }: Placeholders): string {
  return `no, name, version, url,
    CASE WHEN lower(name) = ${literal} THEN 0 WHEN lower(name) LIKE ${prefix} ESCAPE '\\' THEN 1 ELSE 2 END AS rank`;
}

/** The order of `/search`, in the same SQL. */
export const BY_RANK_AND_NAME = 'rank, lower(name), name, no';

/** What a name has to equal, start with or contain: a literal, and LIKE patterns with `\` as escape. */
export function patterns(q: string): { literal: string; prefix: string; infix: string } {
  const literal = q.toLowerCase();
  const escaped = literal.replace(/[\\%_]/g, '\\$&');
  return { literal, prefix: `${escaped}%`, infix: `%${escaped}%` };
}
