#!/usr/bin/env bash
# Installs the programs that the checks need and that are missing: Chromium, HAProxy, Prometheus and wrk. Needs Debian and,
# if one is missing, root.
set -euo pipefail
missing=()
if [ -z "${CHROMIUM:-}" ] && ! command -v chromium-headless-shell >/dev/null; then
  missing+=(chromium-headless-shell fonts-liberation)
fi
command -v haproxy >/dev/null || missing+=(haproxy)
command -v wrk >/dev/null || missing+=(wrk)
command -v promtool >/dev/null || missing+=(prometheus)
if ((${#missing[@]} > 0)); then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
