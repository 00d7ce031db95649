#!/usr/bin/env bash
# The integration tests, on the Elasticsearch and Redis of the environment. Arguments are passed to mocha.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/test-runs.sh

# Two files at a time.
run parallel mocha --parallel 'test/integration/**/*.test.ts' "$@"
# Tests that assert times, or that need both processors.
run serial mocha 'test/serial/**/*.test.ts' "$@"
conclude parallel serial
