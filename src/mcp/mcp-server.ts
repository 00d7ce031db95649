import { McpServer, type CallToolResult } from '@modelcontextprotocol/server';
import * as z from 'zod';
import { parseJson } from '../util/decode.js';
import { trimWhiteSpace } from '../util/unicode.js';
import type { ApiClient } from './api-client.js';
import { checkedSchema, checkPackages } from './check-packages.js';
import {
  foundSchema,
  lookAlikeSchema,
  matchSchema,
  MAX_NAMES,
  SnapshotReader,
  snapshotSchema,
} from './snapshot-reader.js';

const name = z.string().overwrite(trimWhiteSpace);

/** Parses JSON, because some clients send lists, numbers and booleans as text. Returns other values unchanged. */
function parsed<T>(schema: z.ZodType<T>) {
  return z.preprocess((value) => (typeof value === 'string' ? (parseJson(value) ?? value) : value), schema);
}

/** A tool only reads, and only from one service. */
const READING = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

/** Three tools that read the API of one service. An error of the API becomes an error result of the tool. */
export function createMcpServer(api: ApiClient, version: string): McpServer {
  const server = new McpServer(
    { name: 'package-registry-search', version },
    {
      instructions: 'Before you install packages, check all of their names with one call of check_packages.',
    },
  );

  server.registerTool(
    'check_packages',
    {
      description:
        'Check names before installing. exists_as: another spelling of `package`. not_checked: missing, not ' +
        'compared (10 a call): ask again.',
      inputSchema: z.object({
        names: parsed(z.array(name).min(1).max(MAX_NAMES)),
        compare_existing: parsed(z.boolean())
          .prefault(false)
          .describe('Also list look-alikes used 100x more'),
      }),
      outputSchema: snapshotSchema.extend({ results: z.array(checkedSchema) }),
      annotations: { title: 'Check package names', ...READING },
    },
    async ({ names, compare_existing }, { mcpReq: { signal } }) => {
      const reader = await SnapshotReader.open(api, signal);
      return result({ ...reader.about, results: await checkPackages(reader, names, compare_existing) });
    },
  );

  server.registerTool(
    'search_packages',
    {
      description: 'Find packages by name parts.',
      inputSchema: z.object({
        query: name,
        limit: parsed(z.int().min(1).max(100)).prefault(20),
        match: matchSchema.default('contains'),
      }),
      outputSchema: snapshotSchema.extend({ results: z.array(foundSchema), truncated: z.boolean() }),
      annotations: { title: 'Search packages', ...READING },
    },
    async ({ query, limit, match }, { mcpReq: { signal } }) => {
      const reader = await SnapshotReader.open(api, signal);
      return result({ ...reader.about, ...(await reader.search(query, limit, match)) });
    },
  );

  server.registerTool(
    'similar_packages',
    {
      description: 'Find look-alikes of a name.',
      inputSchema: z.object({ name, limit: parsed(z.int().min(1).max(50)).prefault(10) }),
      outputSchema: snapshotSchema.extend({ results: z.array(lookAlikeSchema), truncated: z.boolean() }),
      annotations: { title: 'Find similar names', ...READING },
    },
    async ({ name, limit }, { mcpReq: { signal } }) => {
      const reader = await SnapshotReader.open(api, signal);
      return result({ ...reader.about, ...(await reader.similar(name, limit)) });
    },
  );

  return server;
}

/** A result as structured content and as JSON text. Some clients read only the text. */
function result(structuredContent: Record<string, unknown>): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
}
