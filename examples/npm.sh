#!/bin/sh
# Serves the names of an npm registry from _all_docs: of npm's replication endpoint, a mirror of it, or any other CouchDB.
# Replace what is registry.example, here or in the environment.
set -eu
cd "$(dirname "$0")/.."

REGISTRY="${REGISTRY:-https://replicate.registry.example}"
REGISTRY="${REGISTRY%/}"
WEBSITE="${WEBSITE:-https://registry.example}"
WEBSITE="${WEBSITE%/}"

export REGISTRY_SLUG="${REGISTRY_SLUG:-npm}"
export REGISTRY_SOURCE="${REGISTRY_SOURCE:-registry.example}"
export DATASET_FORMAT=npm
export DATASET_URL="$REGISTRY/_all_docs"
# With +, the name @scope/name keeps its @ and /.
export PACKAGE_URL_TEMPLATE="$WEBSITE/package/{+name}"
# Every refresh reads all pages, ten thousand names each.
export REBUILD_INTERVAL_SECONDS="${REBUILD_INTERVAL_SECONDS:-86400}"

exec npm start
