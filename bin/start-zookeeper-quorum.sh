#!/usr/bin/env bash
# Start every ZooKeeper server of conf/zoo.cfg, each on its host; returns when the quorum serves.
#   bin/start-zookeeper-quorum.sh
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
[ $# -eq 0 ] || usage "start-zookeeper-quorum.sh"
ensure_environment spark
ensure_java
exec "$DREY_PYTHON" -P -m engine.entrypoint.scripts quorum start
