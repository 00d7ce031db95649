#!/usr/bin/env bash
# release-notes.sh TAG [PREFIX]: prints the section of CHANGELOG.md of a release, such as v0.3.0, with PREFIX before its
# links to files. Fails if there is none, or if package.json has another version.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "$1" >&2
  exit 1
}

version=$(node -p 'require("./package.json").version')
[ "$1" = "v$version" ] || fail "the tag is $1, but package.json has version $version"
notes=$(awk -v heading="## $version - " '/^## / { found = index($0, heading) == 1; next } found' CHANGELOG.md)
[ -n "$notes" ] || fail "CHANGELOG.md has no section $version"
sed -E "s|\]\(([^:)#][^:)]*\))|](${2:-}\1|g" <<<"$notes"
