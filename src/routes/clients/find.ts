import * as z from 'zod';
import { component } from '../../http/openapi/components.js';
import type { ErrorForm } from '../../http/openapi/document.js';
import { memoized, parseParams } from '../../http/request/query-params.js';
import { jsonResponse, NO_STORE } from '../../http/response/response.js';
import type { SnapshotRead } from '../../read/snapshot-read.js';
import type { Catalog } from '../../search/catalog.js';
import { MAX_TOTAL } from '../../search/tiered-search.js';
import { decodeEntry, type PackageEntry } from '../../snapshot/package-document.js';
import type { Snapshot } from '../../snapshot/snapshot.js';
import { codePoints, trimWhiteSpace } from '../../util/unicode.js';
import { MAX_LIMIT } from '../schemas.js';
import { isTooShort, MAX_LENGTH } from '../search.js';

/** The text of a search command, which may have no word that is long enough. */
export const typedText = z
  .string('is required')
  .overwrite(trimWhiteSpace)
  .refine((text) => codePoints(text).length <= MAX_LENGTH, `must have at most ${MAX_LENGTH} characters`);

/** The part of the results that a client requests. */
export interface Wanted {
  text: string;
  limit: number;
  offset: number;
}

export interface Found {
  entries: readonly (PackageEntry & { description?: string })[];
  /** As in `/search`: at most `MAX_TOTAL`. */
  total: number;
}

/** Finds what the page finds for the same text. There are no entries after the 500th. */
export function finder(catalog: Catalog, snapshot: Snapshot, requestId: string) {
  return async function find(text: string, limit: number, offset: number): Promise<Found> {
    const q = text
      .split(/\s+/)
      .filter((word) => !isTooShort(word, snapshot))
      .slice(0, 8)
      .join(' ');
    if (q === '') return { entries: [], total: 0 };
    const query = { q, limit: Math.min(offset + limit, MAX_LIMIT), byWeight: true, isCounted: true };
    const { groups, total = 0 } = await catalog.search(snapshot, query, requestId);
    const entries = groups.flatMap((group) => group.entries).slice(offset);
    return { entries: entries.map(decodeEntry), total: Math.min(total, MAX_TOTAL) };
  };
}

/** The search of one client, as the client knows it from its own registry. */
interface ClientSearch<Params extends z.ZodObject> {
  client: string;
  params: Params;
  wanted(params: z.output<Params>): Wanted;
  body(found: Found, wanted: Wanted, snapshot: Snapshot): object;
}

export function clientSearch<Params extends z.ZodObject>(
  catalog: Catalog,
  { client, params, wanted, body }: ClientSearch<Params>,
): SnapshotRead<Wanted & { snapshot?: undefined }> {
  return {
    parse: memoized((querystring) => {
      const { text, limit, offset } = wanted(parseParams(params, querystring));
      return { text, limit, offset: Math.min(offset, MAX_LIMIT) };
    }),
    key: ({ text, limit, offset }) => `${client} ${limit} ${offset} ${text}`,
    async search(query, snapshot, requestId) {
      const { text, limit, offset } = query;
      const found = await finder(catalog, snapshot, requestId)(text, limit, offset);
      return jsonResponse(body(found, query, snapshot));
    },
  };
}

/** Errors as JSON with a text that the client prints. Composer requires this `Content-Type`, without parameters. */
export function jsonErrors<Shape extends z.ZodRawShape>(
  id: string,
  shape: Shape,
  body: (detail: string) => object,
): ErrorForm {
  return {
    schema: component(id, shape),
    respond: ({ status, headers, message }) =>
      jsonResponse(body(message), { ...NO_STORE, 'Content-Type': 'application/json', ...headers }, status),
  };
}
