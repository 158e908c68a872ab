#!/usr/bin/env bash
# Stop the ZooKeeper servers of conf/zoo.cfg on all of their hosts.
#   bin/stop-zookeeper-quorum.sh
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
[ $# -eq 0 ] || usage "stop-zookeeper-quorum.sh"
exec "$DREY_PYTHON" -P -m engine.entrypoint.scripts quorum stop
