#!/usr/bin/env bash
# `npm test`: the unit tests while the engines start, and the integration tests. Arguments are passed to mocha.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/test-runs.sh
[ ! -t 1 ] || export FORCE_COLOR=1

set -m
{
  run unit mocha 'test/unit/**/*.test.ts' "$@" >/dev/null
  show unit
} </dev/null &
set +m
run integration tsx test/support/with-engines.ts scripts/test-integration.sh "$@"
wait
conclude unit integration
