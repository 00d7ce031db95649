#!/usr/bin/env bash
# `npm test -- faults`: two files at a time, and then those that need both processors. Arguments are passed to mocha.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${ELASTICSEARCH_URL:-}" ] || [ -z "${REDIS_URL:-}" ]; then
  exec tsx test/support/with-engines.ts scripts/test-faults.sh "$@"
fi
source scripts/test-runs.sh
[ ! -t 1 ] || export FORCE_COLOR=1

run faults mocha --parallel --ignore test/faults/cluster.test.ts 'test/faults/*.test.ts' "$@"
run serial-faults mocha 'test/faults/serial/*.test.ts' "$@"
conclude faults serial-faults
