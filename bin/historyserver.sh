#!/usr/bin/env bash
# Start or stop a server that shows jobs that have ended, also those of clusters that are gone.
#   bin/historyserver.sh (start|start-foreground) [-D key=value]... | stop | stop-all
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
case "${1:-}" in
    start | start-foreground) ensure_environment ;;
    stop | stop-all) ;;
    *) usage "historyserver.sh (start|start-foreground) [-D key=value]... | stop | stop-all" ;;
esac
exec "$DREY_PYTHON" -m engine.entrypoint.scripts historyserver "$@"
