"""``flink-run ha backup FILE`` and ``flink-run ha restore FILE``: the state of a cluster as one file.

backup    handles, files of jobs that have not ended, history; the cluster may run
restore   where no JobManager leads and no other job is there; the next leader goes on with the jobs

Held by: tests/chaos/test_backups.py
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from engine.cli.progress import format_bytes
from engine.config.loader import load_configuration
from engine.entrypoint.stored_backup import StoredBackup


def back_up(options: argparse.Namespace) -> int:
    """Write a backup."""
    path = Path(options.file)
    count = StoredBackup(load_configuration()).write(path)
    size_bytes = path.stat().st_size
    if options.json:
        print(json.dumps({"file": str(path), "jobs": count, "size_bytes": size_bytes}))
    else:
        print(f"{path}: {_jobs(count)} and the history, {format_bytes(size_bytes)}.")
    return 0


def restore_backup(options: argparse.Namespace) -> int:
    """Restore a backup."""
    path = Path(options.file)
    count = StoredBackup(load_configuration()).restore(path)
    if options.json:
        print(json.dumps({"file": str(path), "jobs": count}))
    else:
        print(f"{_jobs(count)} and the history are restored. The next JobManager that leads goes on with them.")
    return 0


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'} that had not ended"
