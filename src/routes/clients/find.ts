import * as z from 'zod';
import { component } from '../../http/openapi/components.js';
import type { Operation } from '../../http/openapi/document.js';
import { parseParams } from '../../http/request/query-params.js';
import type { PublicUrlReader } from '../../http/request/public-url.js';
import type { Handler } from '../../http/request/request-context.js';
import { jsonResponse, NO_STORE } from '../../http/response/response.js';
import type { SnapshotRead } from '../../read/snapshot-read.js';
import type { Catalog } from '../../search/catalog.js';
import { MAX_TOTAL } from '../../search/tiered-search.js';
import { decodeEntry, type PackageEntry } from '../../snapshot/package-document.js';
import type { Snapshot } from '../../snapshot/snapshot.js';
import { typedQuery } from '../../util/typed-text.js';
import { MAX_LIMIT, PACKAGE_EXAMPLE } from '../schemas.js';

/** Of a package. */
export const descriptionSchema = z.string().optional();

export const totalSchema = z.int().min(0).max(MAX_TOTAL);

/** Composer requires this type, without parameters. */
const ERROR_HEADERS = { ...NO_STORE, 'Content-Type': 'application/json' };

/** The part of the results that a client requests. */
interface Wanted {
  text: string;
  limit: number;
  offset: number;
  /** Always the current one. */
  snapshot?: undefined;
}

interface Found {
  entries: readonly PackageEntry[];
  /** As in `/search`: at most `MAX_TOTAL`. */
  total: number;
  /** When the snapshot was taken. */
  time: string;
}

/** Finds what the page finds for the same text. There are no entries after the 500th. */
export async function find(
  catalog: Catalog,
  snapshot: Snapshot,
  { text, limit, offset }: Wanted,
  requestId: string,
): Promise<Found> {
  const { taken_at: time, name_rule } = snapshot.meta;
  const typed = typedQuery(text, name_rule);
  if (typed === undefined) return { entries: [], total: 0, time };
  const query = { ...typed, limit: Math.min(offset + limit, MAX_LIMIT), byWeight: true, isCounted: true };
  const { groups, total = 0 } = await catalog.search(snapshot, query, requestId);
  const entries = groups.flatMap((group) => group.entries).slice(offset);
  return { entries: entries.map(decodeEntry), total: Math.min(total, MAX_TOTAL), time };
}

/** A search command, as its client knows it from its own registry. */
interface Command<Params extends z.ZodObject> {
  client: string;
  params: Params;
  wanted: (params: z.output<Params>) => Wanted;
  results: z.ZodRawShape;
  body: (found: Found, wanted: Wanted) => object;
  /** The body of an error, of which the client prints the text. */
  error: (detail: string) => z.output<typeof errorSchema>;
}

const errorSchema = component('ClientError', {
  error: z.string().optional(),
  errors: z.array(component('ErrorDetail', { detail: z.string() })).optional(),
  warning: z.string().optional(),
});

const EXAMPLE = { entries: [PACKAGE_EXAMPLE], total: 1, time: '2026-01-02T03:04:05.678Z' };

/** The operation of a search command, and the steps of its read. */
export function clientSearch<Params extends z.ZodObject>(command: Command<Params>) {
  const { client, params, wanted, results, body, error } = command;
  const operation: Operation = {
    id: `searchFor${client}`,
    tag: 'Clients',
    summary: `\`${client.toLowerCase()} search\``,
    description: 'What `/search` finds for all words by weight.',
    params,
    response: {
      description: 'One page of results.',
      schema: component(`${client}Results`, results),
      example: body(EXAMPLE, { text: 'redis', limit: 1, offset: 0 }),
      headers: ['X-Snapshot'],
    },
    problems: ['invalid_parameter', 'initializing', 'search_unavailable'],
    errors: {
      body: { schema: errorSchema, example: error('a text for people') },
      respond: ({ status, headers, message }) =>
        jsonResponse(error(message), { ...ERROR_HEADERS, ...headers }, status),
    },
  };
  const steps = (catalog: Catalog): SnapshotRead<Wanted> => ({
    parse: (querystring) => wanted(parseParams(params, querystring)),
    key: ({ text, limit, offset }) => `${client} ${limit} ${offset} ${text}`,
    async search(query, snapshot, requestId) {
      return jsonResponse(body(await find(catalog, snapshot, query, requestId), query));
    },
  });
  return { operation, steps };
}

/** The endpoint of a document from which a client learns the address of the search. */
export function clientConfig(client: string, shape: z.ZodRawShape, body: (base: string) => object) {
  const operation: Operation = {
    id: `getConfigOf${client}`,
    tag: 'Clients',
    summary: `The configuration of ${client}`,
    description: 'A registry that has a search and no packages.',
    response: {
      description: 'Absolute addresses.',
      schema: component(`${client}Config`, shape),
      example: body('https://search.example'),
    },
  };
  return (publicUrlOf: PublicUrlReader) => {
    const handler: Handler = ({ req }) =>
      jsonResponse(body(publicUrlOf(req)), { 'Cache-Control': 'no-cache' });
    return { operation, handler };
  };
}
