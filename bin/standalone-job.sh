#!/usr/bin/env bash
# Run one job on a JobManager of its own, which ends with it; TaskManagers join with taskmanager.sh start.
#   bin/standalone-job.sh (start|start-foreground) [-D key=value]... JOB.py [args] | stop | stop-all
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
control_daemon standalonejob "JOB.py [args]" "$@"
