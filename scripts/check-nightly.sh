#!/usr/bin/env bash
# `npm run check:nightly`: what takes its time from size or duration, one after the other, because most of it measures.
# Needs what `npm run check` needs. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/test-runs.sh

node scripts/setup.mjs --build
scripts/install-tools.sh
scripts/with-docker.sh npm run --silent images:offline

run guard npm run --silent bench:guard
run mutation sh -c "npm run --silent test:mutation && echo '1 passed, 0 failed'"
run million-names npm run --silent test:browser:million
# Slower than the full soak, because it starts with cold JVMs.
run soak npm run --silent soak -- --reads 24000 --rate 100 --short
run upgrade npm run --silent test:upgrade
run cluster npm run --silent test:cluster
run histories env CHANGES_SEQUENCES=60 UNATTENDED_SECONDS=300 npx mocha test/faults/{changes,unattended}.test.ts
run containers scripts/with-docker.sh npm run --silent test:containers:all
conclude guard mutation million-names soak upgrade cluster histories containers
