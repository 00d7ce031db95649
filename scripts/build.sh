#!/usr/bin/env bash
# `npm run build`: bundles the programs and the page to dist. Types are checked by `npm run typecheck`.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle() { esbuild "$@" --bundle --log-level=warning; }
for_node() { bundle "$@" --platform=node --target=node20; }
# CommonJS packages call it.
require="import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"

# The server and the commands, bundled with their packages: they start twice as fast. Chunks of earlier builds are kept
# for a day, because a command that is still running may load them.
mkdir -p dist/chunks
find dist/chunks -name "*.js" -mtime +0 -delete
for_node src/main.ts src/cli/{dataset,keys,rebuild,rollback}.ts --format=esm --splitting --outbase=src --outdir=dist \
  "--chunk-names=chunks/[name]-[hash]" "--banner:js=$require"
# The rebuild of the server.
for_node src/cli/rebuild.ts --outfile=dist/cli/rebuild.cjs --define:import.meta.url=moduleUrl \
  "--banner:js=const moduleUrl = require('node:url').pathToFileURL(__filename).href;"
# `npm start`, which the image does not have.
[ ! -d dev ] || for_node dev/start.ts --format=esm --external:testcontainers --outfile=dist/dev/start.js "--banner:js=$require"
# The MCP server, which needs nothing else.
for_node src/mcp/mcp.ts --format=esm --outfile=dist/mcp/mcp.js "--banner:js=$require"
cp node_modules/@modelcontextprotocol/server/LICENSE dist/mcp
# The modules of each page.
bundle src/web/search-page.ts src/web/docs-page.ts --minify --format=esm --target=es2022 --outdir=dist/web
cp src/web/*.html src/web/*.css src/web/*.svg dist/web
cp node_modules/openapi-explorer/LICENSE dist/web/docs-page.LICENSE
