"""``flink-run ha gc``: lists what is stored for nobody, and removes it when told so.

Nothing is removed without ``--delete``, nothing that is younger than ``--older-than``, and nothing that a handle in
ZooKeeper names. It may run while the cluster does. A handle whose files are missing is removed by the leader, which is
asked to cancel that job; without a leader it stays. Nodes of the election and nodes of others are never touched.

With ``--json`` one object: {"orphans": [{"kind", "job_id", "path", "size_bytes", "age_s", "state"}], "size_bytes"},
state being listed, young, removed or kept. Exit code 1 when something that should go is kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from pathlib import Path

from engine.cli.progress import format_bytes
from engine.client.elected_leader import zookeeper_settings
from engine.client.leader_address import cluster_client
from engine.config.loader import Configuration, load_configuration
from engine.config.options import HA_CONNECTION_TIMEOUT, HA_TYPE
from engine.dispatcher.file_handles import FileHandles
from engine.dispatcher.orphans import Orphan, find_orphans, remove_orphan
from engine.entrypoint.places import find_places
from engine.entrypoint.servers import load_credentials
from engine.entrypoint.storage_places import shared_folder
from engine.errors import EngineError, ResourceError
from engine.ids import JobId
from ha.interfaces import ForeignStateError, StateHandleStore, StateUnavailableError
from ha.services import create_ha_services


def collect_garbage(options: argparse.Namespace) -> int:
    """List orphans, remove them when told so, and return the exit code."""
    configuration = load_configuration()
    folder = shared_folder(configuration, find_places())
    found: list[tuple[Orphan, str]] = []
    if folder is None:
        _say("neither high-availability.type nor .storageDir is set: nothing is stored of jobs", options)
    else:
        try:
            found = _collected(folder, configuration, options)
        except (StateUnavailableError, ForeignStateError, OSError) as error:
            raise ResourceError(f"what is stored in {folder} cannot be compared with its handles: {error}") from error
    total = sum(orphan.size_bytes for orphan, _ in found)
    if options.json:
        listed = [{**orphan._asdict(), "state": state} for orphan, state in found]
        print(json.dumps({"orphans": listed, "size_bytes": total}))
    elif folder is not None:
        _print_table(found, total, folder)
    return 1 if options.delete and any(state == "kept" for _, state in found) else 0


def _collected(folder: Path, configuration: Configuration, options: argparse.Namespace) -> list[tuple[Orphan, str]]:
    """Return orphans and what became of them."""
    store = _handles(folder, configuration)
    found = []
    for orphan in find_orphans(folder, store, options.outputs):
        state = "listed"
        if orphan.age_s is not None and orphan.age_s < options.older_than:
            state = "young"
        elif options.delete and orphan.kind != "foreign":
            state = _removed(orphan, store, configuration, options)
        found.append((orphan, state))
    return found


def _handles(folder: Path, configuration: Configuration) -> StateHandleStore:
    if configuration.get(HA_TYPE) != "ZOOKEEPER":
        return FileHandles(folder / "handles", lambda epoch: False)
    settings = zookeeper_settings(configuration, load_credentials(configuration))
    return create_ha_services("ZOOKEEPER", zookeeper=settings).state_store()


def _removed(orphan: Orphan, store: StateHandleStore, configuration: Configuration, options: argparse.Namespace) -> str:
    try:
        if orphan.kind == "handle":
            _cancel(JobId(orphan.job_id), configuration)
            return "removed"
        return "removed" if remove_orphan(orphan, store) else "kept"
    except (OSError, EngineError) as error:
        _say(f"{orphan.kind} {orphan.path} is kept: {error}", options)
        return "kept"


def _cancel(job_id: JobId, configuration: Configuration) -> None:
    """Have the leader end a job that it cannot read."""
    with closing(cluster_client(configuration)) as client:
        client.limit_patience(configuration.get(HA_CONNECTION_TIMEOUT) / 1000)
        client.cancel(job_id)


def _print_table(found: list[tuple[Orphan, str]], total: int, folder: Path) -> None:
    for orphan, state in found:
        age = "?" if orphan.age_s is None else _age_text(orphan.age_s)
        size = format_bytes(orphan.size_bytes)
        print(f"{state:8}{orphan.kind:9}{orphan.job_id or '-':34}{size:>9}{age:>8}  {orphan.path}")
    if found:
        print(f"{len(found)} orphans, {format_bytes(total)}, in {folder}")
    else:
        print(f"No orphans in {folder}.")


def _age_text(age_s: float) -> str:
    for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60)):
        if age_s >= seconds:
            return f"{age_s / seconds:.0f} {unit}"
    return f"{age_s:.0f} s"


def _say(text: str, options: argparse.Namespace) -> None:
    print(text, file=sys.stderr if options.json else sys.stdout)
