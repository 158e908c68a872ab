#!/usr/bin/env bash
# Start or stop a server of conf/zoo.cfg on this host, by its number there.
#   bin/zookeeper.sh (start|start-foreground) N | stop | stop-all
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
text="zookeeper.sh (start|start-foreground) N | stop | stop-all"
case "${1:-}" in
    start | start-foreground)
        [[ "${2:-}" =~ ^[0-9]+$ ]] || usage "$text"
        ensure_environment spark
        ensure_java
        ;;
    stop | stop-all) ;;
    *) usage "$text" ;;
esac
exec "$DREY_PYTHON" -P -m engine.entrypoint.scripts zookeeper "$@"
