import { pipeline } from 'node:stream';
import { createGzip } from 'node:zlib';
import * as z from 'zod';
import { encodingFor } from '../http/response/compression.js';
import { etagOf, matches } from '../http/response/etag.js';
import type { Operation } from '../http/openapi/document.js';
import { parseParams } from '../http/request/query-params.js';
import type { Handler } from '../http/request/request-context.js';
import { commonHeaders, readAgainIfDeleted } from '../read/snapshot-read.js';
import { datasetHeader, datasetRows, type DatasetColumns } from '../lists/dataset-rows.js';
import type { Catalog } from '../search/catalog.js';
import type { SnapshotExports, WritePage } from '../search/snapshot-exports.js';
import type { PackageEntry } from '../snapshot/package-document.js';
import type { Snapshot } from '../snapshot/snapshot.js';
import { optionalFields } from '../snapshot/snapshot-meta.js';
import { PACKAGE_EXAMPLE, READ_PROBLEMS, snapshotParam } from './schemas.js';

/** Exports that the rate limit allows in one window. A request costs the limit divided by this number. */
export const EXPORTS_PER_WINDOW = 10;

const CONTENT_TYPES = { csv: 'text/csv', jsonl: 'application/x-ndjson' } as const;

const exportParams = z.object({
  format: z.enum(['csv', 'jsonl'], 'must be csv or jsonl').optional().meta({
    default: 'csv',
    description: 'The format: a dataset as CSV, or one package a line as JSON.',
  }),
  snapshot: snapshotParam,
});

export const exportOperation: Operation = {
  id: 'exportPackages',
  tag: 'Snapshot',
  summary: 'All packages by number, as a file',
  description:
    'The CSV is itself a dataset. A response that cannot be completed is cut off. Few run at a time (503). ' +
    'Costs a tenth of the rate limit.',
  params: exportParams,
  response: {
    description: 'The whole snapshot.',
    contentType: CONTENT_TYPES.csv,
    schema: z.string(),
    example: csvOf([PACKAGE_EXAMPLE], { isNumbered: true, optional: [] }, true),
    otherTypes: { [CONTENT_TYPES.jsonl]: jsonLines([PACKAGE_EXAMPLE]) },
    headers: ['X-Snapshot', 'Content-Disposition'],
  },
  problems: READ_PROBLEMS,
};

/** `GET /export?format=`: all packages of a snapshot by number, as a stream. */
export function exportSnapshot(catalog: Catalog, exports: SnapshotExports, slug: string): Handler {
  return async ({ req, querystring, state }) => {
    const { format = 'csv', snapshot: id } = parseParams(exportParams, querystring);
    const respondFrom = async (snapshot: Snapshot) => {
      const headers = commonHeaders(snapshot, etagOf(snapshot.index, `export ${format}`));
      if (matches(req.headers['if-none-match'], headers.ETag)) return { status: 304, headers };
      const { meta } = snapshot;
      const columns = { isNumbered: meta.has_package_no, optional: optionalFields(meta) };
      const write: WritePage =
        format === 'csv' ? (entries, isFirst) => csvOf(entries, columns, isFirst) : jsonLines;
      const stream = await exports.open(snapshot, write, state.requestId);
      const encoding = encodingFor(req.headers['accept-encoding'], ['gzip']);
      return {
        status: 200,
        headers: {
          ...headers,
          'Content-Type': `${CONTENT_TYPES[format]}; charset=utf-8`,
          'Content-Disposition': `attachment; filename="${slug}-${snapshot.id}.${format}"`,
          ...(encoding && { 'Content-Encoding': encoding }),
        },
        // If one of the two streams ends early, the other does, too.
        stream: encoding === undefined ? stream : pipeline(stream, createGzip(), () => undefined),
      };
    };
    return readAgainIfDeleted(catalog, id, () => catalog.snapshots.select(id), respondFrom);
  };
}

function csvOf(entries: readonly PackageEntry[], columns: DatasetColumns, isFirst: boolean): string {
  return (isFirst ? datasetHeader(columns) : '') + datasetRows(entries, columns);
}

function jsonLines(entries: PackageEntry[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}
