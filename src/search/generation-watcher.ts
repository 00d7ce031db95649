import { errors, type Client, type estypes, type TransportRequestOptions } from '@elastic/elasticsearch';
import { z } from 'zod';
import type { Logger } from '../log.js';
import { describeAuthError } from '../clients/elasticsearch.js';
import { EngineUnavailableError } from '../clients/search-pool.js';
import { callElasticsearch, IMMEDIATE_RETRY } from './msearch.js';

/** How often a replica looks where the alias points, in milliseconds: how late it may learn of a flip. */
const POLL_MS = 1000;

/** What belongs to one build, kept in the index's `_meta`. */
const generationMeta = z.object({
  /** Of what the service reads; fields that only people count by in Kibana may come and go without another one. */
  schema_version: z.literal(1),
  /** How many packages there are. */
  total: z.int().nonnegative(),
  /** The registry's website, such as `tracker.debian.org`. */
  source: z.string(),
  /** When the snapshot was taken, as far as its origin tells (ISO 8601). */
  taken_at: z.iso.datetime(),
  /** SHA-256 of the file as it came, in hexadecimal: equal digests, equal datasets. */
  dataset_digest: z.string(),
  /** What its origin said of it, to ask whether it has changed: its address as SHA-256, `ETag` and `Last-Modified`. */
  dataset_validators: z
    .object({ origin: z.string(), etag: z.string().optional(), lastModified: z.string().optional() })
    .optional(),
});

export type GenerationMeta = z.infer<typeof generationMeta>;

/** One build that is complete: an index that never changes again. */
export interface Generation {
  index: string;
  shards: number;
  meta: GenerationMeta;
}

/** The index an alias points to, whether or not this version can serve it. */
export interface FoundGeneration {
  index: string;
  shards: number;
  /** Undefined if `_meta` was written by another version, or not by this service. */
  meta: GenerationMeta | undefined;
  /** When the index was created, in milliseconds since the epoch. */
  createdAt: number;
  /** Whether an operator closed the index: it cannot be searched. */
  closed: boolean;
}

/**
 * `absent`: Elasticsearch responds and has no complete index. `unreachable`: it does not respond. `unusable`: the alias
 * points to an index that is closed, or whose `_meta` this version cannot read. In the last two a generation seen before
 * is kept.
 */
export const ENGINE_STATES = ['unknown', 'present', 'absent', 'unreachable', 'unusable'] as const;

export type EngineState = (typeof ENGINE_STATES)[number];

/** What `unreachable` means, for an operator. */
const UNREACHABLE =
  'Elasticsearch does not answer at ELASTICSEARCH_URL, or has something else under our alias';

/** What `unusable` means, for an operator. */
const CLOSED = 'the index behind the alias is closed: open it, or rebuild';
const UNREADABLE =
  'the index behind the alias was not written by this version of the service: deploy the version that wrote it, or rebuild';

/** Knows which generation is current: looks every second, and at once when asked to. */
export class GenerationWatcher {
  #current: Generation | undefined;
  #state: EngineState = 'unknown';
  #stateReason: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #stopped = false;

  constructor(
    private readonly client: Client,
    readonly alias: string,
    private readonly log: Logger,
  ) {}

  /** The newest complete generation that was seen, also while Elasticsearch is away. */
  get current(): Generation | undefined {
    return this.#current;
  }

  get engine(): EngineState {
    return this.#state;
  }

  /** Why the state is `unreachable` or `unusable`, in one line for an operator; undefined otherwise. */
  get stateReason(): string | undefined {
    return this.#stateReason;
  }

  /** Looks once, then every second until `stop()`. */
  async start(): Promise<void> {
    await this.refresh();
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /**
   * Looks anew, after this call, never sharing a look that began before it; calls that wait share the next one.
   * Never throws: what it found is in `current` and `engine`.
   */
  refresh(): Promise<void> {
    if (this.#looking === undefined) {
      this.#looking = this.#look().finally(() => (this.#looking = undefined));
      return this.#looking;
    }
    this.#next ??= this.#looking.then(() => {
      this.#next = undefined;
      return this.refresh();
    });
    return this.#next;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      void this.refresh().then(() => this.#schedule());
    }, POLL_MS);
  }

  async #look(): Promise<void> {
    try {
      const found = await findGeneration(this.client, this.alias);
      if (found?.closed === true) {
        this.#enter('unusable', CLOSED, { index: found.index });
        return;
      }
      if (found !== undefined && !isReadable(found)) {
        this.#enter('unusable', UNREADABLE, { index: found.index });
        return;
      }
      if (found?.index !== this.#current?.index) {
        this.log.info({ index: found?.index, total: found?.meta.total }, 'serving another generation');
      }
      this.#current = found;
      this.#enter(found === undefined ? 'absent' : 'present');
    } catch (error) {
      const refusal = describeAuthError(error, 'ELASTICSEARCH_API_KEY');
      this.#enter('unreachable', refusal ?? UNREACHABLE, { err: error });
    }
  }

  #enter(state: EngineState, trouble?: string, details = {}): void {
    if (trouble !== undefined && trouble !== this.#stateReason) this.log.error(details, trouble);
    if (trouble === undefined && this.#stateReason !== undefined)
      this.log.info('Elasticsearch answers again');
    this.#state = state;
    this.#stateReason = trouble;
  }
}

/**
 * The generation an alias points to, or undefined if there is none.
 * @throws {EngineUnavailableError} if Elasticsearch does not respond, or the alias points to more than one index.
 */
export async function findGeneration(
  client: Client,
  alias: string,
  options: Pick<TransportRequestOptions, 'signal'> = {},
): Promise<FoundGeneration | undefined> {
  const look = () => client.indices.get(lookAt(alias), { ...IMMEDIATE_RETRY, ...options });
  const found = await callElasticsearch(look).catch(emptyWhereAbsent);
  const [index, ...others] = Object.keys(found).sort().reverse();
  if (index === undefined) return undefined;
  if (others.length > 0) {
    throw new EngineUnavailableError(
      `the alias ${alias} points to more than one index: ${[index, ...others].join(', ')}`,
    );
  }
  const { mappings, settings } = found[index] ?? {};
  return {
    index,
    shards: Number(settings?.index?.number_of_shards),
    meta: generationMeta.safeParse(mappings?._meta).data,
    createdAt: Number(settings?.index?.creation_date),
    closed: String(settings?.index?.verified_before_close) === 'true',
  };
}

/** Asks for no more than what a generation is made of: every replica asks every second. */
function lookAt(alias: string): estypes.IndicesGetRequest {
  return {
    index: alias,
    features: ['mappings', 'settings'],
    filter_path: [
      '*.mappings._meta',
      ...['number_of_shards', 'creation_date', 'verified_before_close'].map(
        (name) => `*.settings.index.${name}`,
      ),
      'error',
      'status',
    ],
  };
}

function emptyWhereAbsent(error: unknown): estypes.IndicesGetResponse {
  if (error instanceof errors.ResponseError && error.statusCode === 404) return {};
  throw error;
}

/**
 * Checks what is about to be written into an index by the schema that reads it: replicas must be able to serve it.
 * @throws {Error} naming the first field they could not read.
 */
export function assertReadable(meta: GenerationMeta): void {
  const issue = generationMeta.safeParse(meta).error?.issues[0];
  if (issue !== undefined)
    throw new Error(`the _meta of the index would be invalid: ${issue.path.join('.')}: ${issue.message}`);
}

/** Whether this version can serve a generation. */
export function isReadable(found: FoundGeneration): found is FoundGeneration & Generation {
  return found.meta !== undefined;
}
