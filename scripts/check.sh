#!/usr/bin/env bash
# `npm run check`, and all of CI: everything that must pass before a change is merged. Needs a Debian machine
# with Node, Maven and a JDK 21+, and root if no Docker engine runs. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/test-runs.sh

node scripts/setup.mjs --build
npm run --silent typecheck
npm run --silent lint
npm run --silent format:check

missing=()
if [ -z "${CHROMIUM:-}" ] && ! command -v chromium chromium-browser google-chrome >/dev/null; then
  missing+=(chromium fonts-liberation)
fi
command -v haproxy >/dev/null || missing+=(haproxy)
command -v promtool >/dev/null || missing+=(prometheus)
if ((${#missing[@]} > 0)); then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

# Before the tests, which need the processors for themselves.
scripts/with-docker.sh npm run --silent images:offline

# Alone, because it measures the speed of the page.
run browser npm run --silent test:browser </dev/null

# Alone, because its readers must get every response in time; slower than usual, because it starts with cold JVMs.
run soak npm run --silent soak -- --reads 50000 --rate 200 --short </dev/null

# Also alone, because it compares processor times.
run guard npm run --silent bench:guard </dev/null

# These groups run in parallel, because the tests with engines often wait: the tests on this machine (in CI, on the oldest
# supported Node), those in containers on the newest one, and the short ones. The output of the last two follows at the end.
set -m
{
  run this-machine npm test --silent
  run faults npm run --silent test:faults
} </dev/null &
run containers-node-26 scripts/with-docker.sh npm run --silent test:node -- 26 test:containers </dev/null >/dev/null &
{
  run kubernetes npm run --silent test:kubernetes
  run schemathesis npm run --silent test:schemathesis
  run monitoring npm run --silent test:monitoring
  # Last, because the unit tests of this machine, at the beginning, measure the same free space.
  run unit-node-24 npm run --silent test:node -- 24 test:unit
  run unit-node-22 npm run --silent test:node -- 22 test:unit
} </dev/null >/dev/null &
set +m
wait

short=(kubernetes schemathesis monitoring unit-node-24 unit-node-22)
show containers-node-26 "${short[@]}"
conclude browser soak guard this-machine faults containers-node-26 "${short[@]}"
