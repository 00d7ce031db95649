#!/usr/bin/env bash
# `npm run check:nightly`: what takes its time from size or duration, one after the other, because most of it measures.
# Needs what `npm run check` needs. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/test-runs.sh

node scripts/setup.mjs --build
scripts/install-tools.sh
scripts/with-docker.sh npm test --silent -- images

run guard npm run --silent bench:guard
run mutation sh -c "npm test --silent -- mutation && echo '1 passed, 0 failed'"
run million-names npm test --silent -- browser-million
# Slower than the full soak, because it starts with cold JVMs.
run soak npm run --silent soak -- --reads 24000 --rate 100 --short
run upgrade npm test --silent -- upgrade
run cluster npm test --silent -- cluster
run histories env CHANGES_SEQUENCES=60 UNATTENDED_SECONDS=300 npx mocha test/faults/{changes,unattended}.test.ts
run containers scripts/with-docker.sh npm test --silent -- containers-all
conclude guard mutation million-names soak upgrade cluster histories containers
