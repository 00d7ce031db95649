#!/usr/bin/env bash
# `npm test`: the unit tests beside the integration tests, which mostly wait. The output of the former follows at the end,
# and then the sum of both. Arguments go to mocha.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/test-runs.sh
[ ! -t 1 ] || export FORCE_COLOR=1

set -m
run unit mocha 'test/unit/**/*.test.ts' "$@" </dev/null >/dev/null &
set +m
# The JVM's optimizing compiler does not pay off in so short a time: it takes a third of Elasticsearch's processor time.
ES_JAVA_OPTS=-XX:TieredStopAtLevel=1 run integration mocha 'test/integration/**/*.test.ts' "$@"
wait

show unit
conclude unit integration
