#!/usr/bin/env bash
# go-tool.sh PACKAGE@VERSION: prints the path of a program of a Go module: that on the PATH or, if it is missing, one
# that this builds once.
set -euo pipefail
source "${0%/*}/cache.sh"

# Timeout of the build, in seconds.
BUILD_SECONDS=300

fail() {
  echo "$1" >&2
  exit 1
}

package=${1%@*}
version=${1##*@}
# `…/kustomize/v5` is Kustomize, too.
name=$(sed -E 's|/v[0-9]+$||; s|.*/||' <<<"$package")
folder=$cache/$name-$version
if command -v "$name" >/dev/null; then
  echo "$name"
  exit
fi
if [ ! -x "$folder/$name" ]; then
  echo "Building $name $version (once) …" >&2
  scratch=$(mktemp -d "$folder-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  go=$("${0%/*}/go.sh" "$cache/go")
  mkdir "$scratch/program"
  # Go must not download another toolchain, and its caches are deleted after the build.
  GOTOOLCHAIN=local GOPATH=$scratch/modules GOFLAGS=-modcacherw GOCACHE=$scratch/objects GOBIN=$scratch/program \
    timeout "$BUILD_SECONDS" "$go" install "$1" >&2 || fail "building $name failed (go install)"
  # Another process may have been faster.
  mv -T "$scratch/program" "$folder" 2>/dev/null || [ -x "$folder/$name" ]
fi
echo "$folder/$name"
