#!/usr/bin/env bash
# The health check of the image: succeeds if the server of this environment responds. It runs every five seconds, so it
# starts no Node process, and the image has neither curl nor wget. It repeats the server's defaults, and that an empty
# variable counts as unset. The caller sets the timeout, as the Dockerfile does.
set -euo pipefail
exec 3<>"/dev/tcp/${HOST:-127.0.0.1}/${PORT:-3000}"
printf 'GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
read -r _ status _ <&3
[ "$status" = 200 ]
