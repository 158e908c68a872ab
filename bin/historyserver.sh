#!/usr/bin/env bash
# Start or stop a server that shows the jobs of clusters that have ended.
#   bin/historyserver.sh (start|start-foreground) [-D key=value]... | stop | stop-all
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
case "${1:-}" in
    start | start-foreground | stop | stop-all) ;;
    *) usage "historyserver.sh (start|start-foreground) [-D key=value]... | stop | stop-all" ;;
esac
die "there is no history server yet; a JobManager shows the jobs that ended while it runs"
