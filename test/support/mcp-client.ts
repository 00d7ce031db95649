import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

export const MCP_PROGRAM = fileURLToPath(new URL('../../dist/mcp/mcp.js', import.meta.url));

/** How a client opens a connection: as since 2024, or as since 2026. */
export const PROTOCOLS = ['legacy', { pin: '2026-07-28' }] as const;

interface Options {
  env?: Record<string, string>;
  program?: string;
  mode?: (typeof PROTOCOLS)[number];
}

/** Starts the MCP server and connects the official client to it. */
export async function startMcp(
  url: string,
  { env = {}, program = MCP_PROGRAM, mode = 'legacy' }: Options = {},
): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
  const args = [program, '--url', url];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, env }));
  return client;
}

/** The text of a result, or of an error of a tool. */
export function textOf({ content }: Awaited<ReturnType<Client['callTool']>>): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}
