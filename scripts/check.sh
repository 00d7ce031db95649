#!/usr/bin/env bash
# check.sh: `npm run check`, and all of CI: everything that a change must pass. check.sh nightly:
# `npm run check:nightly`, large and long tests. Both need a Debian machine with Node, Maven and a JDK 21+, and root if
# no Docker engine runs or a program is missing. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/.."

# Installs the programs that the checks need and that are missing, and builds the images.
prepare() {
  local missing=()
  if [ -z "${CHROMIUM:-}" ] && ! command -v chromium-headless-shell >/dev/null; then
    missing+=(chromium-headless-shell fonts-liberation)
  fi
  command -v haproxy >/dev/null || missing+=(haproxy)
  command -v wrk >/dev/null || missing+=(wrk)
  command -v promtool >/dev/null || missing+=(prometheus)
  if ((${#missing[@]} > 0)); then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
  fi
  scripts/with-docker.sh npm test --silent -- images
}

if [ "${1:-}" = nightly ]; then
  node scripts/setup.mjs --build
  prepare
  command -v composer >/dev/null || apt-get install -y -qq --no-install-recommends composer php-curl
  source scripts/test-runs.sh
  # One after the other, because most of them measure.
  run guard npm run --silent bench:guard
  run mutation sh -c "npm test --silent -- mutation && echo '1 passed, 0 failed'"
  run page sh -c "npm run --silent bench -- page && echo '1 passed, 0 failed'"
  # A lower rate than in the full soak, because the JVMs are cold.
  run soak npm run --silent soak -- --reads 24000 --rate 100 --short
  run upgrade npm test --silent -- upgrade
  run cluster npm test --silent -- cluster
  run names env RULE_SEARCHES=2000 npx mocha test/integration/{search-oracle,name-rules}.test.ts
  run histories env CHANGES_SEQUENCES=60 UNATTENDED_SECONDS=300 npx mocha test/faults/{changes,unattended}.test.ts
  # With the real times of the lock. In half an hour, the heap of a JVM for short runs would fill.
  run rebuilds env ES_JAVA_OPTS= LOCK_WAIT_SECONDS=35 HANG_SECONDS=45 npx mocha test/faults/{rebuild-signals,elasticsearch-outages}.test.ts
  run containers scripts/with-docker.sh npm test --silent -- containers-all
  run kubernetes-score npm test --silent -- kubernetes-score
  run package-managers npm test --silent -- package-managers
  conclude guard mutation page soak upgrade cluster names histories rebuilds containers kubernetes-score package-managers
fi

if [ -z "${ELASTICSEARCH_URL:-}" ] || [ -z "${REDIS_URL:-}" ]; then
  node scripts/setup.mjs --build
  # The lint takes as long as the other two commands together.
  printf '%s\n' 'run lint' 'run typecheck' 'exec prettier -- --check .' | xargs -P 2 -L 1 npm --silent
  prepare
  # The tests below share one Elasticsearch and one Redis, except those that start their own.
  exec npx tsx test/support/with-engines.ts scripts/check.sh
fi
source scripts/test-runs.sh

# Nothing runs beside them, because some of these tests assert times.
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
  run clients npm test --silent -- clients
  for version in 22 24 26; do run "unit-node-$version" npm test --silent -- node "$version" unit; done
} </dev/null >/dev/null &
set +m
wait

second=(containers kubernetes workflows clients unit-node-22 unit-node-24 unit-node-26)
show "${second[@]}"
conclude test browser serial-faults faults schemathesis monitoring "${second[@]}"
