#!/usr/bin/env bash
# Runs a command with a Docker engine: the running one, or a temporary one on a separate socket, which ends
# with the command. A temporary one requires root on Debian; missing packages are installed.
set -euo pipefail

if docker info >/dev/null 2>&1; then
  # Compose as a plugin of Docker, or as a separate program.
  docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null || apt-get install -y -qq docker-compose
  exec "$@"
fi

missing=()
for package in docker.io:dockerd docker-compose:docker-compose debootstrap:debootstrap; do
  command -v "${package#*:}" >/dev/null || missing+=("${package%:*}")
done
if ((${#missing[@]} > 0)); then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
fi

state=$(mktemp -d /tmp/package-registry-search-docker-XXXXXX)
# The images are kept, so that the next engine does not build them again. In its own session, so that Ctrl-C does not
# reach it before the command has stopped its containers.
setsid dockerd --data-root /var/cache/package-registry-search/docker --exec-root "$state/exec" --pidfile "$state/pid" \
  --host "unix://$state/socket" >"$state/log" 2>&1 &
engine=$!
finish() {
  trap '' TERM INT HUP
  local remaining
  remaining=$(docker ps --all --quiet 2>/dev/null) || true
  [ -z "$remaining" ] || docker rm --force --volumes $remaining >/dev/null || true
  kill "$engine" 2>/dev/null || true
  wait "$engine" 2>/dev/null || true
  rm -rf "$state"
}

export DOCKER_HOST="unix://$state/socket"
trap finish EXIT
trap 'exit 143' TERM INT HUP

for ((i = 0; ; i++)); do
  docker info >/dev/null 2>&1 && break
  if ((i == 60)) || ! kill -0 "$engine" 2>/dev/null; then
    echo 'dockerd does not start; the end of its log:' >&2
    tail -5 "$state/log" >&2
    exit 1
  fi
  sleep 1
done

# testcontainers' own image removes what a killed test run has left. It may be unavailable, and is not needed:
# the containers end with this engine.
export TESTCONTAINERS_RYUK_DISABLED=true
"$@"
