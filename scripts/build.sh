#!/usr/bin/env bash
# `npm run build`: compiles src to dist, and bundles what is one file there.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle() { esbuild "$@" --bundle --log-level=warning; }

tsc -p src
# The rebuild of the server, which starts twice as fast.
bundle src/cli/rebuild.ts --platform=node --target=node20 --outfile=dist/cli/rebuild.cjs --define:import.meta.url=moduleUrl \
  "--banner:js=const moduleUrl = require('node:url').pathToFileURL(__filename).href;"
# The MCP server, which needs nothing else.
bundle src/mcp/mcp.ts --platform=node --target=node20 --format=esm --outfile=dist/mcp/mcp.js \
  "--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);"
cp node_modules/@modelcontextprotocol/server/LICENSE dist/mcp
# The modules of each page.
bundle src/web/search-page.ts src/web/docs-page.ts --minify --format=esm --target=es2022 --outdir=dist/web
cp src/web/*.html src/web/*.css src/web/*.svg dist/web
cp node_modules/openapi-explorer/LICENSE dist/web/docs-page.LICENSE
