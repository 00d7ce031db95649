import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@elastic/elasticsearch';
import { encodeEntry, entryMembers, type PackageEntry } from '../catalog/entry.js';
import type { CheckedDataset } from './check.js';
import type { Row } from './rows.js';

/** Characters of one bulk request: large enough that the round trip does not count, small against the engine's heap. */
const BULK_LENGTH = 1_000_000;
/** Bulk requests in flight. */
const CONCURRENCY = 4;
/** How often a bulk request that the engine was too busy for is sent again, and the pause before, in milliseconds. */
const RETRIES = 5;
const RETRY_PAUSE_MS = 1000;

interface LoadOptions {
  /** The rows stop by it, too. */
  signal: AbortSignal;
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
  { signal, onRows }: LoadOptions,
): Promise<void> {
  let loaded = 0;
  const bulks = bulkRequests(rows, dataset);
  // All take from the same requests. Who fails ends them for the others, too; what is in flight is waited for.
  const sender = async () => {
    for await (const { body, count } of bulks) {
      await send(client, index, body, signal);
      onRows((loaded += count));
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: CONCURRENCY }, sender));
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

/** The fields of mappings/packages.json: the entry's own, for people, and the answer's JSON beside them. */
function indexAction(entry: PackageEntry, ordinal: number): string {
  const members = entryMembers(entry);
  const document = `{${members},"ordinal":${ordinal},"entry":"${encodeEntry(members)}"}`;
  return `{"index":{"_id":"${entry.no}"}}\n${document}\n`;
}

interface BulkAnswer {
  errors: boolean;
  items?: { index: { error: { type: string; reason: string } } }[];
}

/** Of a good answer nothing but that it is one; otherwise what was refused. */
const FILTER_PATH = 'errors,items.*.error';

/** What Elasticsearch says where it has no room at the moment. */
const TOO_BUSY = ['es_rejected_execution_exception', 'circuit_breaking_exception'];

/** Sends a bulk request, again where the engine was too busy for a part. @throws {Error} naming a refusal that stays. */
async function send(client: Client, index: string, body: string, signal: AbortSignal): Promise<void> {
  const path = `/${index}/_bulk`;
  for (let attempt = 0; ; attempt++) {
    const answer = await client.transport.request<BulkAnswer>(
      { method: 'POST', path, querystring: { filter_path: FILTER_PATH }, bulkBody: body },
      { signal },
    );
    if (!answer.errors) return;
    const refusals = (answer.items ?? []).map(({ index: { error } }) => error);
    const refusal = refusals.find(({ type }) => !TOO_BUSY.includes(type)) ?? refusals[0];
    if (refusal === undefined || !TOO_BUSY.includes(refusal.type) || attempt === RETRIES) {
      throw new Error(`Elasticsearch refused a document: ${refusal?.type}: ${refusal?.reason}`);
    }
    await pause(RETRY_PAUSE_MS, undefined, { signal });
  }
}
