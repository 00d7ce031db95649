import { McpServer, type CallToolResult } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { trimWhiteSpace } from '../unicode.js';
import type { ApiClient } from './api-client.js';
import { checkedSchema, checkPackages } from './check-packages.js';
import {
  foundSchema,
  lookAlikeSchema,
  MAX_NAMES,
  SnapshotReader,
  snapshotSchema,
} from './snapshot-reader.js';

const name = z.string().overwrite(trimWhiteSpace);

const READ_ONLY = { readOnlyHint: true };

/** The MCP server: three tools, which read the API of one service. Errors of the API are errors of the tools. */
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
        'Check package names before installing. exists_as: another spelling of `package`. not_checked: no such ' +
        'package, look-alikes unknown (10 a call): ask again.',
      inputSchema: z.object({
        names: z.array(name).min(1).max(MAX_NAMES),
        compare_existing: z
          .boolean()
          .default(false)
          .describe(
            'Also list look-alikes used 100 times more than an existing package, if `weight` is known',
          ),
      }),
      outputSchema: snapshotSchema.extend({ results: z.array(checkedSchema) }),
      annotations: READ_ONLY,
    },
    async ({ names, compare_existing }, { mcpReq: { signal } }) => {
      const reader = await SnapshotReader.open(api, signal);
      return result({ ...reader.about, results: await checkPackages(reader, names, compare_existing) });
    },
  );

  server.registerTool(
    'search_packages',
    {
      description: 'Find packages whose name contains a text.',
      inputSchema: z.object({ query: name, limit: z.int().min(1).max(100).default(20) }),
      outputSchema: snapshotSchema.extend({ results: z.array(foundSchema), truncated: z.boolean() }),
      annotations: READ_ONLY,
    },
    async ({ query, limit }, { mcpReq: { signal } }) => {
      const reader = await SnapshotReader.open(api, signal);
      return result({ ...reader.about, ...(await reader.search(query, limit)) });
    },
  );

  server.registerTool(
    'similar_packages',
    {
      description: 'Find packages whose names are easily mistaken for a name, such as typosquats.',
      inputSchema: z.object({ name, limit: z.int().min(1).max(50).default(10) }),
      outputSchema: snapshotSchema.extend({ results: z.array(lookAlikeSchema), truncated: z.boolean() }),
      annotations: READ_ONLY,
    },
    async ({ name, limit }, { mcpReq: { signal } }) => {
      const reader = await SnapshotReader.open(api, signal);
      return result({ ...reader.about, ...(await reader.similar(name, limit)) });
    },
  );

  return server;
}

/** A result for programs, and the same as text for clients without structured results. */
function result(structuredContent: Record<string, unknown>): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
}
