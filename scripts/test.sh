#!/usr/bin/env bash
# test.sh [GROUP] [ARGUMENT…]: runs a group of tests; further arguments are passed to mocha. Without a group, the unit tests while the
# engines start, and the integration tests, in at most four processes at a time, two of which mostly wait.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in integration | faults) group=$1 && shift ;; *) group=default ;; esac

if [ "$group" = faults ] && { [ -z "${ELASTICSEARCH_URL:-}" ] || [ -z "${REDIS_URL:-}" ]; }; then
  exec tsx test/support/with-engines.ts scripts/test.sh faults "$@"
fi
source scripts/test-runs.sh
[ ! -t 1 ] || export FORCE_COLOR=1

waiting='test/integration/@(impostors|refresh).test.ts'

case $group in
default)
  set -m
  {
    run unit mocha 'test/unit/**/*.test.ts' "$@" >/dev/null
    show unit
  } </dev/null &
  set +m
  run integration tsx test/support/with-engines.ts scripts/test.sh integration "$@"
  wait
  conclude unit integration
  ;;
integration)
  # Two files at a time, beside the files that mostly wait.
  set -m
  {
    run waiting mocha "$waiting" "$@" >/dev/null
    show waiting
  } </dev/null &
  set +m
  run parallel mocha --parallel --ignore "$waiting" 'test/integration/*.test.ts' "$@"
  wait
  # Tests that assert times, or that need both processors.
  run serial mocha 'test/integration/serial/**/*.test.ts' "$@"
  conclude parallel waiting serial
  ;;
faults)
  run faults mocha --parallel --ignore test/faults/cluster.test.ts 'test/faults/*.test.ts' "$@"
  run serial-faults mocha 'test/faults/serial/*.test.ts' "$@"
  conclude faults serial-faults
  ;;
esac
