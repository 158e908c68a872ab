#!/usr/bin/env bash
# Stop the TaskManagers of all hosts in conf/workers, then the JobManager.
#   bin/stop-cluster.sh
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
[ $# -eq 0 ] || usage "stop-cluster.sh"
exec "$DREY_PYTHON" -P -m engine.entrypoint.scripts cluster stop
