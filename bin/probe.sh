#!/usr/bin/env bash
# Ask a process on this host whether it is alive, or ready: it registered, leads or knows the leader. Exit code 0: ok.
#   bin/probe.sh (jobmanager|taskmanager|historyserver|any) [alive|ready] [-D key=value]...
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
exec "$DREY_PYTHON" -P -m engine.entrypoint.probe "$@"
