"""``flink-run ha gc``: lists what is stored and no job needs any more, and removes it when told to.

Nothing is removed without ``--delete``, nothing that is younger than ``--older-than``, and nothing that a handle in
ZooKeeper names. It may run while the cluster does. A handle whose files are missing is removed by the leader, which is
asked to cancel that job; without a leader the handle stays. Nodes of the election and of other programs are never
touched.

With ``--json`` one object: {"orphans": [{"kind", "job_id", "path", "size_bytes", "age_s", "state"}], "size_bytes"},
state being listed, young, removed or kept. Exit code 1 when something that should go is kept.

Held by: tests/dispatcher/test_orphans.py
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing

from engine.cli.progress import format_bytes
from engine.client.leader_address import cluster_client
from engine.config.loader import Configuration, load_configuration
from engine.config.options import HA_CONNECTION_TIMEOUT
from engine.dispatcher.orphans import Orphan
from engine.entrypoint.stored_garbage import StoredGarbage
from engine.errors import EngineError, ResourceError
from engine.files.paths import local_path
from engine.ids import JobId
from engine.storage.store_client import use_store_settings


def collect_garbage(options: argparse.Namespace) -> int:
    """List orphans, remove them when told so, and return the exit code."""
    configuration = load_configuration()
    garbage = StoredGarbage(configuration)
    found: list[tuple[Orphan, str]] = []
    if garbage.folder is None and options.outputs:
        raise ResourceError(
            f"{', '.join(options.outputs)}: which jobs still write there is not known, since neither "
            "high-availability.type nor .storageDir is set; call it with the configuration of a cluster that has one"
        )
    if garbage.folder is None:
        _say("neither high-availability.type nor .storageDir is set: nothing is stored of jobs", options)
    else:
        use_store_settings(configuration.storage_texts())
        for orphan in garbage.find([local_path(output, "ha gc") for output in options.outputs]):
            state = "listed"
            if orphan.age_s is not None and orphan.age_s < options.older_than:
                state = "young"
            elif options.delete and orphan.kind != "foreign":
                state = _removed(orphan, garbage, configuration, options)
            found.append((orphan, state))
    total = sum(orphan.size_bytes for orphan, _ in found)
    if options.json:
        shown = ("kind", "job_id", "path", "size_bytes", "age_s")
        listed = [{**{key: getattr(orphan, key) for key in shown}, "state": state} for orphan, state in found]
        print(json.dumps({"orphans": listed, "size_bytes": total}))
    elif garbage.folder is not None:
        _print_table(found)
        places = ", ".join(map(str, (garbage.folder, *options.outputs)))
        count = "1 orphan" if len(found) == 1 else f"{len(found)} orphans"
        print(f"{count}, {format_bytes(total)}, in {places}" if found else f"No orphans in {places}")
    return 1 if options.delete and any(state == "kept" for _, state in found) else 0


def _removed(orphan: Orphan, garbage: StoredGarbage, configuration: Configuration, options: argparse.Namespace) -> str:
    try:
        if orphan.kind == "handle":
            _cancel(JobId(orphan.job_id), configuration)
            return "removed"
        return "removed" if garbage.remove(orphan) else "kept"
    except (OSError, EngineError) as error:
        _say(f"{orphan.kind} {orphan.path} is kept: {error}", options)
        return "kept"


def _cancel(job_id: JobId, configuration: Configuration) -> None:
    """Make the leader end a job that it cannot read."""
    with closing(cluster_client(configuration)) as client:
        client.limit_patience(configuration.get(HA_CONNECTION_TIMEOUT) / 1000)
        client.cancel(job_id)


def _print_table(found: list[tuple[Orphan, str]]) -> None:
    for orphan, state in found:
        age = "?" if orphan.age_s is None else _age_text(orphan.age_s)
        size = format_bytes(orphan.size_bytes)
        print(f"{state:8}{orphan.kind:9}{orphan.job_id or '-':34}{size:>9}{age:>8}  {orphan.path}")


def _age_text(age_s: float) -> str:
    for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60)):
        if age_s >= seconds:
            return f"{age_s / seconds:.0f} {unit}"
    return f"{age_s:.0f} s"


def _say(text: str, options: argparse.Namespace) -> None:
    print(text, file=sys.stderr if options.json else sys.stdout)
