#!/bin/sh
# Serves the names of the packages in a group of GitLab, and the newest version of each, from its API.
# Gitea is below. Replace what is registry.example and change-me, here or in the environment.
set -eu
cd "$(dirname "$0")/.."

REGISTRY="${REGISTRY:-https://gitlab.registry.example}"
REGISTRY="${REGISTRY%/}"
GROUP="${GROUP:-my-group}"
TOKEN="${TOKEN:-change-me}"

export REGISTRY_SLUG="${REGISTRY_SLUG:-gitlab}"
export DATASET_FORMAT=json
# A package is listed once for each version: of a repeated name, the last one counts.
export DATASET_URL="$REGISTRY/api/v4/groups/$GROUP/packages?order_by=created_at&sort=asc&per_page=100"
# An array of {"name": …, "version": …}. The header Link leads to the next page.
export DATASET_JSON='name=name version=version'
# The scope read_api is enough.
export DATASET_AUTHORIZATION="Bearer $TOKEN"
export PACKAGE_URL_TEMPLATE="$REGISTRY/groups/$GROUP/-/packages?search[]={name}"

# Gitea lists the newest version first, and the last one counts: without version=version, all are `latest`.
#   export DATASET_URL="$REGISTRY/api/v1/packages/$OWNER?limit=50"
#   export DATASET_JSON='name=name'
#   export DATASET_AUTHORIZATION="token $TOKEN"
#   export PACKAGE_URL_TEMPLATE="$REGISTRY/$OWNER/-/packages?q={name}"

exec npm start
