#!/usr/bin/env bash
# `npm test`: the unit and integration tests, on one Elasticsearch and one Redis. Arguments are passed to mocha.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${ELASTICSEARCH_URL:-}" ] || [ -z "${REDIS_URL:-}" ]; then
  exec tsx test/support/with-engines.ts scripts/test.sh "$@"
fi
source scripts/test-runs.sh
[ ! -t 1 ] || export FORCE_COLOR=1

# Two files at a time. The long ones first, so that both workers end at about the same time.
run parallel mocha --parallel 'test/integration/**/*.test.ts' 'test/unit/**/*.test.ts' "$@"
# Tests that assert times, or that need both processors.
run serial mocha 'test/serial/**/*.test.ts' "$@"
conclude parallel serial
