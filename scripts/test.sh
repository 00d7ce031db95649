#!/usr/bin/env bash
# `npm test`: runs the unit tests in parallel with the integration tests, which mostly wait. The output of the
# unit tests follows at the end, and then the totals. Arguments are passed to mocha.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/test-runs.sh
[ ! -t 1 ] || export FORCE_COLOR=1

set -m
run unit mocha 'test/unit/**/*.test.ts' "$@" </dev/null >/dev/null &
set +m
run integration mocha 'test/integration/**/*.test.ts' "$@"
wait

show unit
conclude unit integration
