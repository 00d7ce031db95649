import { setTimeout as pause } from 'node:timers/promises';
import { errors, type Client } from '@elastic/elasticsearch';
import { encodeEntry, entryMembers, type PackageEntry } from '../catalog/entry.js';
import { NODE_AWAY } from '../clients/search-pool.js';
import type { Logger } from '../log.js';
import type { CheckedDataset } from './check.js';
import { facetsOf } from './facets.js';
import { loadingAliasOf } from './index-names.js';
import type { Row } from './rows.js';

/** Characters of one bulk request: large enough that the round trip does not count, small against the engine's heap. */
const BULK_LENGTH = 1_000_000;
/**
 * Bulk requests in flight: one more than Elasticsearch is working on, so that it never waits for the next. Beside readers
 * it does wait, and has a processor free for them: their slowest searches take half as long, the load a third longer.
 */
const IN_FLIGHT = 2;
const IN_FLIGHT_BESIDE_READERS = 1;
/**
 * For so long a bulk request is sent again where the engine is away or too busy, and the pause before, in milliseconds:
 * long enough for a node to be restarted.
 */
const PATIENCE_MS = 180_000;
const RETRY_PAUSE_MS = 1000;
/** No answer to a bulk request for so long is a failure, in milliseconds; Elasticsearch itself waits a minute for a shard. */
const TIMEOUT_MS = 90_000;

interface LoadOptions {
  /** Whether another index is being searched meanwhile. */
  besideReaders: boolean;
  /** The rows stop by it, too. */
  signal: AbortSignal;
  log: Logger;
  patienceMs?: number;
  timeoutMs?: number;
  /** Told how many packages are in the index. */
  onRows: (rows: number) => void;
}

/**
 * Writes every package of a checked dataset into an index. The `_id` is the package number, so that a bulk request that
 * is sent twice changes nothing.
 * @throws {Error} when a single document is not in the index at the end.
 */
export async function loadDataset(
  client: Client,
  index: string,
  rows: AsyncIterable<Row[]>,
  dataset: CheckedDataset,
  options: LoadOptions,
): Promise<void> {
  let loaded = 0;
  const bulks = bulkRequests(rows, dataset);
  // All take from the same requests. Who fails ends them for the others, too; what is in flight is waited for.
  const sender = async () => {
    for await (const { body, count } of bulks) {
      await send(client, index, body, options);
      options.onRows((loaded += count));
    }
  };
  const length = options.besideReaders ? IN_FLIGHT_BESIDE_READERS : IN_FLIGHT;
  const outcomes = await Promise.allSettled(Array.from({ length }, sender));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  if (loaded !== dataset.total) throw new Error(`${loaded} of ${dataset.total} packages were loaded`);
}

interface BulkRequest {
  /** Newline-delimited JSON. */
  body: string;
  /** Documents in it. */
  count: number;
}

async function* bulkRequests(
  rows: AsyncIterable<Row[]>,
  dataset: CheckedDataset,
): AsyncGenerator<BulkRequest> {
  let body = '';
  let count = 0;
  for await (const batch of rows) {
    for (const row of batch) {
      if ('reason' in row || dataset.duplicateLines.has(row.line)) continue;
      body += indexAction(row.entry, dataset.ordinalOf(row.entry.no));
      count++;
      if (body.length < BULK_LENGTH) continue;
      yield { body, count };
      body = '';
      count = 0;
    }
  }
  if (count > 0) yield { body, count };
}

/** The fields of mappings/packages.json: the entry's own and its facets, for people, and the answer's JSON beside them. */
function indexAction(entry: PackageEntry, ordinal: number): string {
  const members = entryMembers(entry);
  const facets = JSON.stringify(facetsOf(entry.name)).slice(1, -1);
  const document = `{${members},"ordinal":${ordinal},${facets},"entry":"${encodeEntry(members)}"}`;
  return `{"index":{"_id":"${entry.no}"}}\n${document}\n`;
}

interface BulkAnswer {
  errors: boolean;
  items?: { index: { error: { type: string; reason: string } } }[];
}

/** Of a good answer nothing but that it is one; otherwise what was refused. */
const FILTER_PATH = 'errors,items.*.error';

/** What Elasticsearch says of a document that it has no room or no shard for at the moment. */
const TOO_BUSY = [
  'es_rejected_execution_exception',
  'circuit_breaking_exception',
  'unavailable_shards_exception',
];

/** Statuses of a node that is busy or away. */
const NOT_NOW = [429, ...NODE_AWAY];

/** Why a bulk request did not go through this time. */
class NotNow extends Error {
  override readonly name = 'NotNow';
}

/**
 * Sends a bulk request, again while the engine is away or too busy for a part of it.
 * @throws {Error} naming a refusal that stays.
 */
async function send(
  client: Client,
  index: string,
  body: string,
  { signal, log, patienceMs = PATIENCE_MS, timeoutMs = TIMEOUT_MS }: LoadOptions,
): Promise<void> {
  let failing: number | undefined;
  for (;;) {
    try {
      // The client's time-out is an event on the signal that it is given: each request has one of its own.
      await sendOnce(client, index, body, AbortSignal.any([signal]), timeoutMs);
      return;
    } catch (error) {
      if (!(error instanceof NotNow)) throw error;
      if (failing === undefined)
        log.warn({ err: error }, 'a part of the load is tried again until it goes through');
      failing ??= performance.now();
      if (performance.now() - failing >= patienceMs) throw error;
    }
    await pause(RETRY_PAUSE_MS, undefined, { signal });
  }
}

/** @throws {NotNow} where the same request may go through later. */
async function sendOnce(
  client: Client,
  index: string,
  body: string,
  signal: AbortSignal,
  requestTimeout: number,
): Promise<void> {
  // To the alias, and only if it is one: to the name of an index that another builder has removed, Elasticsearch would
  // write a new one.
  const path = `/${loadingAliasOf(index)}/_bulk`;
  const querystring = { require_alias: true, filter_path: FILTER_PATH };
  const answer = await client.transport
    .request<BulkAnswer>(
      { method: 'POST', path, querystring, bulkBody: body },
      { signal, requestTimeout, maxRetries: 0 },
    )
    .catch((error: unknown) => {
      if (isAway(error))
        throw new NotNow(`Elasticsearch does not answer: ${error.message}`, { cause: error });
      throw error;
    });
  if (!answer.errors) return;
  const refusals = (answer.items ?? []).map(({ index: { error } }) => error);
  const refusal = refusals.find(({ type }) => !TOO_BUSY.includes(type)) ?? refusals[0];
  const message = `Elasticsearch refused a document: ${refusal?.type}: ${refusal?.reason}`;
  throw refusal !== undefined && TOO_BUSY.includes(refusal.type) ? new NotNow(message) : new Error(message);
}

function isAway(error: unknown): error is Error {
  if (error instanceof errors.ResponseError) return NOT_NOW.includes(error.statusCode ?? 0);
  return error instanceof errors.ConnectionError || error instanceof errors.TimeoutError;
}
