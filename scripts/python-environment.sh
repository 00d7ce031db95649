#!/usr/bin/env bash
# python-environment.sh FOLDER PIP_OPTION…: creates a virtual environment with these packages, unless there is one, and
# prints the path of its Python.
set -euo pipefail
# Timeout of the installation, in seconds: the package registry is probably unreachable.
INSTALL_SECONDS=300

fail() {
  echo "$1" >&2
  exit 1
}

version=$(python3 -c 'import sys; print(*sys.version_info[:2], sep=".") if sys.version_info >= (3, 11) else sys.exit(1)') ||
  fail 'Python 3.11 or newer is needed (Debian: apt-get install python3-venv)'
# Another version would not find the packages.
folder=$1-$version
shift
python=$folder/bin/python
if [ ! -x "$python" ]; then
  echo "Installing $* (once) …" >&2
  mkdir -p "${folder%/*}"
  scratch=$(mktemp -d "$folder-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  python3 -m venv "$scratch" || fail 'python3 -m venv failed'
  timeout "$INSTALL_SECONDS" "$scratch/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2 ||
    fail 'pip failed'
  # Another process may have been faster.
  mv -T "$scratch" "$folder" 2>/dev/null || [ -x "$python" ]
fi
echo "$python"
