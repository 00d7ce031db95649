import type { Client } from '@elastic/elasticsearch';
import { encodeEntry, type PackageEntry } from '../catalog/entry.js';
import type { CheckedDataset } from './check.js';
import type { Row } from './rows.js';

/** Bytes of one bulk request: large enough that the round trip does not count, small against the engine's heap. */
const FLUSH_BYTES = 2_000_000;
/** Bulk requests in flight. */
const CONCURRENCY = 2;
/** How often a document that the engine was too busy for is sent again, and the pause before, in milliseconds. */
const RETRIES = 5;
const RETRY_PAUSE_MS = 1000;

interface LoadOptions {
  /** The rows stop by it, too. */
  signal: AbortSignal;
  /** Told how many packages have been sent. */
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
  let refused: string | undefined;
  let broken: Error | undefined;
  /** Ends instead of throwing: where its source throws, the helper leaves its flush timer running for 30 seconds. */
  async function* quiet(source: AsyncIterable<Document>): AsyncGenerator<Document> {
    try {
      yield* source;
    } catch (error) {
      broken = error as Error;
      void bulk.abort();
    }
  }
  const bulk = client.helpers.bulk<Document>({
    index,
    datasource: quiet(documents(rows, dataset, onRows)),
    onDocument: ({ id, body }) => [{ index: { _id: id } }, body],
    flushBytes: FLUSH_BYTES,
    concurrency: CONCURRENCY,
    retries: RETRIES,
    wait: RETRY_PAUSE_MS,
    onDrop: ({ operation, error, status }) => {
      refused ??= `${JSON.stringify(operation)}: ${error?.reason ?? `status ${status}`}`;
      void bulk.abort();
    },
  });
  const { failed, aborted, successful } = await bulk;
  signal.throwIfAborted();
  if (broken !== undefined) throw broken;
  if (refused !== undefined) throw new Error(`Elasticsearch refused a document: ${refused}`);
  if (failed > 0 || aborted || successful !== dataset.total) {
    throw new Error(`${successful} of ${dataset.total} packages were loaded, ${failed} failed`);
  }
}

interface Document {
  id: string;
  /** JSON text. */
  body: string;
}

async function* documents(
  rows: AsyncIterable<Row[]>,
  dataset: CheckedDataset,
  onRows: (rows: number) => void,
): AsyncGenerator<Document> {
  let count = 0;
  for await (const batch of rows) {
    for (const row of batch) {
      if ('reason' in row || dataset.duplicateLines.has(row.line)) continue;
      yield toDocument(row.entry, dataset.ordinalOf(row.entry.no));
      count++;
    }
    onRows(count);
  }
}

/** The fields of mappings/packages.json: the entry's own, where they can be searched, and the answer's JSON beside them. */
function toDocument(entry: PackageEntry, ordinal: number): Document {
  const { no, name, version, url } = entry;
  const body = JSON.stringify({ no, ordinal, name, version, url, entry: encodeEntry(entry) });
  return { id: String(no), body };
}
