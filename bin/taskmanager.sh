#!/usr/bin/env bash
# Start or stop a TaskManager on this host. Each start adds one; stop ends the latest.
#   bin/taskmanager.sh (start|start-foreground) [-D key=value]... | stop | stop-all
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
control_daemon taskmanager "" "$@"
