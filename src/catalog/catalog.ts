import { EngineUnavailable, type SearchPool } from '../clients/search-pool.js';
import { initializing, searchUnavailable } from '../problem.js';
import { IndexGone, runSearches } from './engine.js';
import type { EntryGroup } from './entry.js';
import type { Gate } from './gate.js';
import type { Generation, Generations } from './generation.js';
import { browsePage, searchTiers } from './queries.js';

/** The answer to a search: entries by rank, best first. */
export interface SearchResults {
  groups: EntryGroup[];
  count: number;
  /** More names match than were asked for. */
  truncated: boolean;
}

/** Reads the current generation, only so many searches at a time. */
export class Catalog {
  constructor(
    private readonly pool: SearchPool,
    private readonly generations: Generations,
    private readonly gate: Gate,
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

  /**
   * Answers from the current generation, and once more from the next one when it was pruned in between.
   * @throws {Problem} 503
   */
  async read<T>(answer: (generation: Generation) => Promise<T>): Promise<T> {
    try {
      return await answer(this.generation()).catch(async (error: unknown) => {
        if (!(error instanceof IndexGone)) throw error;
        await this.generations.refresh();
        return answer(this.generation());
      });
    } catch (error) {
      if (error instanceof EngineUnavailable || error instanceof IndexGone) throw searchUnavailable(error);
      throw error;
    }
  }

  /** At most `limit` names of a generation that contain `q`, by rank and name. @throws {IndexGone} {EngineUnavailable} */
  search(generation: Generation, q: string, limit: number): Promise<SearchResults> {
    return this.gate.run(() => searchIndex(this.pool, generation, q, limit));
  }

  /** Page `page` (from 1) of all packages by number; empty past the end. @throws {IndexGone} {EngineUnavailable} */
  async browse({ index, meta }: Generation, page: number, limit: number): Promise<EntryGroup> {
    const from = (page - 1) * limit;
    if (from >= meta.total) return { entries: [] };
    return this.gate.run(() => browseIndex(this.pool, index, from, limit));
  }
}

/** `Catalog.search` on one index. */
export async function searchIndex(
  pool: SearchPool,
  { index, shards }: Pick<Generation, 'index' | 'shards'>,
  q: string,
  limit: number,
): Promise<SearchResults> {
  // One more than asked for tells whether the answer is truncated, without counting every match.
  const [startsWith, containsElsewhere] = await runSearches(pool, index, searchTiers(q, limit + 1, shards));
  if (startsWith === undefined || containsElsewhere === undefined)
    throw new Error('two searches have two answers');
  const found = startsWith.entries.length + containsElsewhere.entries.length;
  const { exact } = startsWith;
  const groups: EntryGroup[] = [
    { rank: 0, entries: startsWith.entries.slice(0, Math.min(exact, limit)) },
    { rank: 1, entries: startsWith.entries.slice(exact, limit) },
    { rank: 2, entries: containsElsewhere.entries.slice(0, Math.max(0, limit - startsWith.entries.length)) },
  ];
  return { groups, count: Math.min(found, limit), truncated: found > limit };
}

/** The packages of one index with an ordinal in [from, from + size). */
export async function browseIndex(
  pool: SearchPool,
  index: string,
  from: number,
  size: number,
): Promise<EntryGroup> {
  const [hits] = await runSearches(pool, index, [browsePage(from, size)]);
  return { entries: hits?.entries ?? [] };
}
