#!/bin/bash
# With ES_DISTRIBUTION_TYPE=docker, Elasticsearch reads its settings from the environment.
set -euo pipefail
echo 'This Elasticsearch was assembled by `npm test -- images`; it is not the official image.'

cd /usr/share/elasticsearch
export JAVA="$PWD/jdk/bin/java" ES_JAVA_HOME="$PWD/jdk" JAVA_TYPE=ES_JAVA_HOME ES_DISTRIBUTION_TYPE=docker
export ES_HOME="$PWD" ES_PATH_CONF="$PWD/config" ES_TMPDIR=/tmp ES_JAVA_OPTS="${ES_JAVA_OPTS:-}"
exec "$JAVA" -Xms4m -Xmx64m -XX:+UseSerialGC -cp "$PWD/lib/tools/server-launcher/*" \
  org.elasticsearch.server.launcher.ServerLauncher
