import { z } from 'zod';
import { messageOf } from '../error-message.js';

/** An entry of a response. Members that a tool does not promise are removed. */
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

export type Package = z.output<typeof packageSchema>;
export type LookAlike = z.output<typeof lookAlikeSchema>;

/** What every result says about the data. */
export const snapshotSchema = z.object({
  registry: z.string(),
  source: z.string(),
  taken_at: z.string(),
  note: z.string(),
});

const NOTE = 'This is a snapshot: a newer package may be missing.';

/** Results of a search, and whether there are more. */
interface Page<T> {
  results: T[];
  truncated: boolean;
}

/** A request that failed. The message is for the agent: what happened, and when to try again. */
export class ApiError extends Error {}

/** Timeout of one request, in milliseconds. The service itself takes a few seconds at most. */
const TIMEOUT_MS = 10_000;

/** Seconds to wait before another attempt if no response says it. */
const DEFAULT_WAIT_SECONDS = 10;

/** Status codes after which the same request may succeed later; 502 and 504 are of proxies. */
const TEMPORARY = [429, 502, 503, 504];

/**
 * Length of the query string of one `/lookup`. Proxies accept request lines of 8 KB, the service heads of 16 KB.
 * A hundred names of up to sixty characters fit.
 */
const MAX_QUERY_LENGTH = 7000;

/** A client of the HTTP API of one service. All methods throw {@link ApiError}, or the reason of an aborted signal. */
export class ApiClient {
  /**
   * @param base the address of the service, which may have a path.
   * @param token from `/get-bypass`: skips the rate limits for one hour.
   */
  constructor(
    private readonly base: URL,
    private readonly token?: string,
  ) {}

  /** A view on the current snapshot: all of its reads are of that snapshot, also if another one goes live meanwhile. */
  async currentSnapshot(signal: AbortSignal): Promise<SnapshotReader> {
    const { body, headers } = await this.get('stats', [], z.looseObject({ source: z.string() }), signal);
    const [, registry] = /^total_(.+)_packages$/m.exec(Object.keys(body).join('\n')) ?? [];
    const takenAt = new Date(headers.get('Last-Modified') ?? '');
    const id = headers.get('X-Snapshot');
    if (registry === undefined || id === null || Number.isNaN(takenAt.getTime())) throw this.#notTheService();
    const about = { registry, source: body.source, taken_at: takenAt.toISOString(), note: NOTE };
    return new SnapshotReader(this, id, about, signal);
  }

  /** Sends a request and parses the response. */
  async get<T>(path: string, params: Params, schema: z.ZodType<T>, signal: AbortSignal) {
    const url = new URL(`./${path}?${new URLSearchParams(params).toString()}`, this.base);
    const response = await this.#fetch(url, signal);
    const { text, headers, status } = response;
    if (status !== 200) throw this.#failure(response);
    const parsed = schema.safeParse(parseJson(text));
    if (!parsed.success) throw this.#notTheService();
    return { body: parsed.data, headers };
  }

  async #fetch(url: URL, signal: AbortSignal) {
    const headers = this.token === undefined ? {} : { 'X-Bypass-Token': this.token };
    try {
      // A redirect could take the token to another host.
      const response = await fetch(url, {
        headers,
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      return { text: await response.text(), headers: response.headers, status: response.status };
    } catch (error) {
      signal.throwIfAborted();
      // The error of `fetch` itself only says that it failed.
      const reason = messageOf(((error as Error).cause ?? error) as Error);
      throw new ApiError(`${this.base.origin} cannot be reached (${reason}). ${retry(DEFAULT_WAIT_SECONDS)}`);
    }
  }

  #failure({ status, headers, text }: { status: number; headers: Headers; text: string }): ApiError {
    const problem = problemSchema.safeParse(parseJson(text));
    if (!problem.success && !TEMPORARY.includes(status)) return this.#notTheService();
    const said = problem.success ? `${problem.data.code}: ${problem.data.detail}.` : `HTTP status ${status}.`;
    const sentences = [said.replace(/\.\.$/, '.')];
    if (status === 429 && this.token !== undefined) {
      sentences.push('The bypass token is not valid here, or expired: it lasts one hour.');
    }
    if (TEMPORARY.includes(status)) sentences.push(retry(secondsToWait(headers.get('Retry-After'))));
    return new ApiError(sentences.join(' '));
  }

  #notTheService(): ApiError {
    return new ApiError(`${this.base.href} does not respond like a package registry search: check --url.`);
  }
}

/** Names and values of a query string. */
type Params = [name: string, value: string][];

const problemSchema = z.object({ code: z.string(), detail: z.string() });

/** Reads one snapshot. */
export class SnapshotReader {
  /** @param about the part of every result that describes the snapshot. */
  constructor(
    private readonly api: ApiClient,
    private readonly id: string,
    readonly about: z.output<typeof snapshotSchema>,
    private readonly signal: AbortSignal,
  ) {}

  /** The packages of exactly these names, by name; names without a package are missing. */
  async lookup(names: readonly string[]): Promise<Map<string, Package>> {
    const schema = z.object({ results: z.array(z.object({ package: packageSchema.nullable() })) });
    const found = new Map<string, Package>();
    for (const part of queriesOf(names)) {
      const params = part.map((name): [string, string] => ['name', name]);
      const { body } = await this.#read('lookup', params, schema);
      for (const { package: entry } of body.results) if (entry !== null) found.set(entry.name, entry);
    }
    return found;
  }

  /** The names nearest to `name`, of one distance the most used ones first. */
  similar(name: string, limit: number): Promise<Page<LookAlike>> {
    return this.#page('similar', ['name', name], limit, lookAlikeSchema);
  }

  /** Names that contain `q`, of one rank the most used ones first. */
  search(q: string, limit: number): Promise<Page<z.output<typeof foundSchema>>> {
    return this.#page('search', ['q', q], limit, foundSchema);
  }

  async #page<T>(path: string, what: Params[number], limit: number, entry: z.ZodType<T>): Promise<Page<T>> {
    const params: Params = [what, ['limit', String(limit)], ['sort', 'weight']];
    const { body, headers } = await this.#read(path, params, z.object({ results: z.array(entry) }));
    return { results: body.results, truncated: headers.get('X-Results-Truncated') === 'true' };
  }

  #read<T>(path: string, params: Params, schema: z.ZodType<T>) {
    return this.api.get(path, [...params, ['snapshot', this.id]], schema, this.signal);
  }
}

/** Splits names into groups that fit into one request. */
function queriesOf(names: readonly string[]): string[][] {
  const groups: string[][] = [];
  let length = Infinity;
  for (const name of names) {
    const added = new URLSearchParams({ name }).toString().length + 1;
    length += added;
    if (length > MAX_QUERY_LENGTH) {
      groups.push([]);
      length = added;
    }
    groups.at(-1)?.push(name);
  }
  return groups;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `Retry-After`: seconds, or a date, which some proxies send. */
function secondsToWait(retryAfter: string | null): number {
  const seconds = /^\d+$/.test(retryAfter ?? '')
    ? Number(retryAfter)
    : Math.ceil((Date.parse(retryAfter ?? '') - Date.now()) / 1000);
  return seconds >= 0 ? seconds : DEFAULT_WAIT_SECONDS;
}

function retry(seconds: number): string {
  return `Try again in ${seconds} seconds.`;
}
