#!/usr/bin/env bash
# Start or stop a server that shows ended jobs, also those of clusters that are gone.
#   bin/historyserver.sh (start|start-foreground) [-D key=value]... | stop | stop-all
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
control_daemon historyserver "" "$@"
