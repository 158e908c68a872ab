#!/usr/bin/env bash
# Start or stop a JobManager on this host. With ZooKeeper a supervisor restarts it when it dies.
#   bin/jobmanager.sh (start|start-foreground) [-D key=value]... [host [port]] | stop | stop-all
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
control_daemon jobmanager "[host [port]]" "$@"
