import * as z from 'zod';
import type { ApiClient, Params } from './api-client.js';

/** An entry of a response. Members that are not part of the tools' results are removed. */
export const packageSchema = z.object({
  no: z.number(),
  name: z.string(),
  version: z.string(),
  url: z.string(),
  weight: z.number().optional(),
});
export const foundSchema = packageSchema.extend({
  rank: z.number().describe('0 equal, 1 prefix, 2 elsewhere'),
});
export const lookAlikeSchema = packageSchema.extend({ distance: z.number() });

export const matchSchema = z.enum(['contains', 'prefix', 'exact', 'words']);

export type Package = z.output<typeof packageSchema>;
export type LookAlike = z.output<typeof lookAlikeSchema>;

/** The part of every result that describes the data. */
export const snapshotSchema = z.object({
  registry: z.string(),
  source: z.string(),
  taken_at: z.string(),
  note: z.string(),
});

const NOTE = 'This is a snapshot: a newer package may be missing.';

/** The response of `/stats`. The name of its member `total_<slug>_packages` contains the slug of the registry. */
const statsSchema = z.looseObject({ source: z.string() });
const TOTAL = /^total_(.+)_packages$/m;

/** Proxies accept request lines of 8 KB, the service 16 KB with headers. 100 names of up to 60 characters fit. */
const MAX_QUERY_LENGTH = 7000;

/** Maximum number of names in one `/lookup`, and in one call of a tool. */
export const MAX_NAMES = 100;

interface Page<T> {
  results: T[];
  truncated: boolean;
}

/**
 * Reads one snapshot even if a new one goes live meanwhile, unless a proxy removes the header `X-Snapshot`. Methods
 * throw the errors of {@link ApiClient.get}.
 */
export class SnapshotReader {
  private constructor(
    private readonly api: ApiClient,
    /** The parameter that selects the snapshot. */
    private readonly snapshot: Params,
    readonly about: z.output<typeof snapshotSchema>,
    private readonly signal: AbortSignal,
  ) {}

  static async open(api: ApiClient, signal: AbortSignal): Promise<SnapshotReader> {
    const { body, headers } = await api.get('stats', [], statsSchema, signal);
    const [, registry = ''] = TOTAL.exec(Object.keys(body).join('\n')) ?? [];
    // Some proxies remove `Last-Modified` or `X-Snapshot`.
    const takenAt = new Date(headers.get('Last-Modified') ?? '');
    const taken_at = Number.isNaN(takenAt.getTime()) ? 'unknown' : takenAt.toISOString();
    const about = { registry, source: body.source, taken_at, note: NOTE };
    const id = headers.get('X-Snapshot');
    return new SnapshotReader(api, id === null ? [] : [['snapshot', id]], about, signal);
  }

  /** Maps each given name to its package. Names without a package are missing. */
  async lookup(names: readonly string[]): Promise<Map<string, Package>> {
    const schema = z.object({
      results: z.array(z.object({ name: z.string(), package: packageSchema.nullable() })),
    });
    const found = new Map<string, Package>();
    for (const group of groupsOf(names)) {
      const { body } = await this.#read('lookup', group, schema);
      for (const { name, package: entry } of body.results) if (entry !== null) found.set(name, entry);
    }
    return found;
  }

  /** The names nearest to `name`; names at the same distance are sorted by weight. */
  similar(name: string, limit: number): Promise<Page<LookAlike>> {
    return this.#page('similar', [['name', name]], limit, lookAlikeSchema);
  }

  /** Names that match `q`, by rank; names of equal rank are sorted by weight. */
  search(
    q: string,
    limit: number,
    match: z.output<typeof matchSchema>,
  ): Promise<Page<z.output<typeof foundSchema>>> {
    return this.#page('search', Object.entries({ q, match }), limit, foundSchema);
  }

  async #page<T>(path: string, what: Params, limit: number, entry: z.ZodType<T>): Promise<Page<T>> {
    const params: Params = [...what, ['limit', String(limit)], ['sort', 'weight']];
    const { body, headers } = await this.#read(path, params, z.object({ results: z.array(entry) }));
    return { results: body.results, truncated: headers.get('X-Results-Truncated') === 'true' };
  }

  #read<T>(path: string, params: Params, schema: z.ZodType<T>) {
    return this.api.get(path, [...params, ...this.snapshot], schema, this.signal);
  }
}

/** The `name` parameters of `/lookup`, in groups. Each group fits into one request. */
function groupsOf(names: readonly string[]): Params[] {
  const groups: Params[] = [];
  let length = Infinity;
  for (const name of names) {
    const added = new URLSearchParams({ name }).toString().length + 1;
    length += added;
    if (length > MAX_QUERY_LENGTH || groups.at(-1)?.length === MAX_NAMES) {
      groups.push([]);
      length = added;
    }
    groups.at(-1)?.push(['name', name]);
  }
  return groups;
}
