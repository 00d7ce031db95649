#!/usr/bin/env bash
# `npm run sbom [-- FILE]`: writes sbom.cdx.json, the packages of the image in the format of CycloneDX.
set -euo pipefail
target=$(realpath "${1:-$(dirname "$0")/../sbom.cdx.json}")
cd "$(dirname "$0")/.."

# With npm 11, `npm sbom --omit dev` also omits packages that development dependencies share with the others, such as
# zod. It also names the result after the folder.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/package-registry-search
mkdir "$copy"
cp package.json package-lock.json .npmrc "$copy"
(
  cd "$copy"
  npm pkg delete devDependencies
  npm install --package-lock-only --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
  npm sbom --package-lock-only --sbom-format cyclonedx --sbom-type application >"$scratch/sbom.cdx.json"
)
mv "$scratch/sbom.cdx.json" "$target"
