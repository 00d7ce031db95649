#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import packageJson from '../../package.json' with { type: 'json' };
import { ApiClient } from './api-client.js';
import { createMcpServer } from './mcp-server.js';

const USAGE = 'usage: node dist/mcp/mcp.js --url http://HOST:PORT';

/**
 * `node dist/mcp/mcp.js --url http://…`: an MCP server on standard input and output, until the input ends. It is a client of
 * the service at that address. `BYPASS_TOKEN` is a token from `/get-bypass`. Exit code 2: misused.
 */
function main(args: string[], token: string | undefined): void {
  const base = addressIn(args);
  if (base === undefined) {
    console.error(USAGE);
    process.exitCode = 2;
    return;
  }
  const api = new ApiClient(base, token);
  serveStdio(() => createMcpServer(api, packageJson.version), {
    onerror: ({ message }) => console.error(message),
  });
}

/** The address of the service, with a slash at its end; undefined if it is missing or malformed. */
function addressIn(args: string[]): URL | undefined {
  try {
    const { url = '' } = parseArgs({ args, options: { url: { type: 'string' } } }).values;
    const base = new URL(url.endsWith('/') ? url : `${url}/`);
    // `fetch` refuses addresses with credentials.
    return /^https?:$/.test(base.protocol) && base.username + base.password === '' ? base : undefined;
  } catch {
    return undefined;
  }
}

main(process.argv.slice(2), process.env['BYPASS_TOKEN'] || undefined);
