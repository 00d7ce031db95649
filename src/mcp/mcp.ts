#!/usr/bin/env node
import { parseArgs } from 'node:util';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import packageJson from '../../package.json' with { type: 'json' };
import { ProxyError, proxyOf } from '../util/proxy.js';
import { ApiClient } from './api-client.js';
import { createMcpServer } from './mcp-server.js';

const USAGE = 'usage: node dist/mcp/mcp.js --url http://HOST:PORT';

/** The program was called incorrectly. The message is for the person who configured it. */
class UsageError extends Error {}

/** Printable ASCII. Many other characters are invalid in a header, and the error of `fetch` would quote the token. */
const TOKEN = /^[\x21-\x7e]+$/;

/**
 * An MCP server on standard input and output, until the input ends. `BYPASS_TOKEN` is a token from `/get-bypass`. Exits
 * with code 2 if the address, the token or the proxy is invalid.
 */
async function main(args: string[], token: string | undefined): Promise<void> {
  try {
    const base = addressIn(args);
    if (token !== undefined && !TOKEN.test(token)) {
      throw new UsageError('BYPASS_TOKEN has a character that no token has, such as a line break');
    }
    const proxy = proxyOf(base);
    const api = new ApiClient(base, token, proxy && (await proxiedFetch(proxy)));
    serveStdio(() => createMcpServer(api, packageJson.version), {
      onerror: ({ message }) => console.error(message),
    });
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof ProxyError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}

/** The address of the service, with a slash at its end. @throws {UsageError} if it is missing or malformed. */
function addressIn(args: string[]): URL {
  try {
    const { url = '' } = parseArgs({ args, options: { url: { type: 'string' } } }).values;
    const base = new URL(url.endsWith('/') ? url : `${url}/`);
    // `fetch` refuses addresses with credentials.
    if (/^https?:$/.test(base.protocol) && base.username + base.password === '') return base;
  } catch {
    // The usage below explains this error, too.
  }
  throw new UsageError(USAGE);
}

/**
 * `fetch` through a proxy. As in downloads, requests to http addresses use no tunnel, because many proxies reject
 * tunnels to ports other than 443. Exception: if the address of the proxy is https, undici always uses a tunnel. The
 * `fetch` is from the undici package, because Node does not export the agent of its own `fetch`. The package is loaded
 * on demand, because loading takes 0.1 s.
 */
async function proxiedFetch(proxy: URL): Promise<typeof fetch> {
  const undici = await import('undici');
  const dispatcher = new undici.ProxyAgent({ uri: proxy.href, proxyTunnel: false });
  const send: unknown = (url: URL, init: object) => undici.fetch(url, { ...init, dispatcher });
  // Node's types of `fetch` are from another version of undici.
  return send as typeof fetch;
}

await main(process.argv.slice(2), process.env['BYPASS_TOKEN'] || undefined);
