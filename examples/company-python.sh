#!/bin/sh
# Serves the names of a company's Python packages from the Simple index of its server (devpi, pypiserver, Artifactory, Nexus).
# Replace what is registry.example and change-me, here or in the environment.
set -eu
cd "$(dirname "$0")/.."

REGISTRY="${REGISTRY:-https://registry.example}"
REGISTRY="${REGISTRY%/}"
TOKEN="${TOKEN:-change-me}"

export REGISTRY_SLUG="${REGISTRY_SLUG:-company-python}"
export DATASET_FORMAT=pypi
export DATASET_URL="$REGISTRY/simple/"
# For a user and a password: "Basic $(printf %s "$USERNAME:$PASSWORD" | base64)".
export DATASET_AUTHORIZATION="Bearer $TOKEN"
# The page of a package that a result leads to.
export PACKAGE_URL_TEMPLATE="$REGISTRY/simple/{name}/"
# New names are found within an hour. An unchanged list costs one request.
export REBUILD_INTERVAL_SECONDS="${REBUILD_INTERVAL_SECONDS:-3600}"

exec npm start
