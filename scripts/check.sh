#!/usr/bin/env bash
# `npm run check`, and all of CI: everything that a change must pass. Needs a Debian machine with Node, Maven and a
# JDK 21+, and root if no Docker engine runs. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${ELASTICSEARCH_URL:-}" ] || [ -z "${REDIS_URL:-}" ]; then
  node scripts/setup.mjs --build
  # The lint takes as long as the other two.
  printf '%s\n' 'run lint' 'run typecheck' 'exec prettier -- --check .' | xargs -P 2 -L 1 npm --silent
  scripts/install-tools.sh
  scripts/with-docker.sh npm test --silent -- images
  # The tests below share one Elasticsearch and one Redis, except those that start their own.
  exec npx tsx test/support/with-engines.ts scripts/check.sh
fi
source scripts/test-runs.sh

# Alone, because some of these tests assert times.
run test npm test --silent
run browser npm test --silent -- browser
run serial-faults npx mocha 'test/faults/serial/*.test.ts'

# In parallel, because tests of faults and containers often wait. The output of the second half follows at the end.
set -m
{
  run faults npx mocha --parallel --ignore test/faults/cluster.test.ts 'test/faults/*.test.ts'
  run schemathesis npm test --silent -- schemathesis
  run monitoring npm test --silent -- monitoring
} </dev/null &
{
  run containers scripts/with-docker.sh npm test --silent -- node 26 containers
  run kubernetes npm test --silent -- kubernetes
  run workflows npm test --silent -- workflows
  # Compiles with four toolchains, beside tests that have deadlines.
  run clients nice npm test --silent -- clients
  for version in 22 24 26; do run "unit-node-$version" npm test --silent -- node "$version" unit; done
} </dev/null >/dev/null &
set +m
wait

second=(containers kubernetes workflows clients unit-node-22 unit-node-24 unit-node-26)
show "${second[@]}"
conclude test browser serial-faults faults schemathesis monitoring "${second[@]}"
