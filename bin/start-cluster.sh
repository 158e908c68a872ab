#!/usr/bin/env bash
# Start a JobManager here and a TaskManager for each line of conf/workers; returns when all of them are ready.
#   bin/start-cluster.sh [-D key=value]...
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
case "${1:-}" in
    "" | -D*) ;;
    *) usage "start-cluster.sh [-D key=value]..." ;;
esac
ensure_environment
exec "$DREY_PYTHON" -P -m engine.entrypoint.scripts cluster start "$@"
