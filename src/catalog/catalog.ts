import type { Client } from '@elastic/elasticsearch';
import { initializing, searchUnavailable } from '../problem.js';
import { EngineUnavailable, IndexGone, runSearches, type Hit } from './engine.js';
import type { Generation, Generations } from './generation.js';
import { browsePage, rankOf, searchTiers, type SearchBody } from './queries.js';

/** The answer to a search: JSON texts of the entries with their `rank`, best first. */
export interface SearchResults {
  entries: string[];
  /** More names match than were asked for. */
  truncated: boolean;
}

/** Reads the current generation. Entries are JSON texts, ready to be put into an answer. */
export class Catalog {
  constructor(
    private readonly client: Client,
    private readonly generations: Generations,
  ) {}

  /**
   * The generation that reads are served from.
   * @throws {Problem} 503 `initializing` before the first is complete, `search_unavailable` where that cannot be told.
   */
  generation(): Generation {
    const generation = this.generations.current;
    if (generation !== undefined) return generation;
    throw this.generations.engine === 'absent' ? initializing() : searchUnavailable();
  }

  /** At most `limit` names that contain `q`, by rank and name. @throws {Problem} 503 */
  async search(q: string, limit: number): Promise<SearchResults> {
    return this.#read(({ index }) => searchIndex(this.client, index, q, limit));
  }

  /** Page `page` (from 1) of all packages by number; empty past the end. @throws {Problem} 503 */
  async browse(page: number, limit: number): Promise<string[]> {
    return this.#read(({ index, meta }) => browseIndex(this.client, index, meta.total, page, limit));
  }

  /** Reads from the current generation, and once more from the next one when it was pruned in between. */
  async #read<T>(read: (generation: Generation) => Promise<T>): Promise<T> {
    try {
      return await read(this.generation()).catch(async (error: unknown) => {
        if (!(error instanceof IndexGone)) throw error;
        await this.generations.refresh();
        return read(this.generation());
      });
    } catch (error) {
      if (error instanceof EngineUnavailable || error instanceof IndexGone) throw searchUnavailable(error);
      throw error;
    }
  }
}

/** `Catalog.search` on one index. */
export async function searchIndex(
  client: Client,
  index: string,
  q: string,
  limit: number,
): Promise<SearchResults> {
  // One more than asked for tells whether the answer is truncated, without counting every match.
  const [startsWith, containsElsewhere] = await runSearches(client, index, searchTiers(q, limit + 1));
  const entries = [
    ...(startsWith ?? []).map((hit) => withRank(hit, rankOf(hit.score))),
    ...(containsElsewhere ?? []).map((hit) => withRank(hit, 2)),
  ];
  return { entries: entries.slice(0, limit), truncated: entries.length > limit };
}

/** `Catalog.browse` on one index of `total` packages. */
export async function browseIndex(
  client: Client,
  index: string,
  total: number,
  page: number,
  limit: number,
): Promise<string[]> {
  const from = (page - 1) * limit;
  if (from >= total) return [];
  const bodies: SearchBody[] = [browsePage(from, limit)];
  const [hits] = await runSearches(client, index, bodies);
  return (hits ?? []).map((hit) => hit.entry);
}

function withRank(hit: Hit, rank: 0 | 1 | 2): string {
  return `${hit.entry.slice(0, -1)},"rank":${rank}}`;
}
