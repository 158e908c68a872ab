"""``flink-run taskmanager list | drain | stop``: the TaskManagers of a running cluster.

list      each one: state, slots, tasks, memory, disk, version, host; RUNNING or DRAINING
drain     it takes no more slots; tasks that run end, results that are kept there are read, then its process ends
stop      the same within ``--timeout``; what is left then is made again on others. Waits until it is gone

Gone is one that the leader says has signed off. A list without it says nothing: a new leader knows none at first.

An id may be shortened to digits that only one of them begins with.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from typing import Any

from engine.cli.progress import format_bytes
from engine.client.cluster_client import ClusterClient
from engine.errors import ConfigurationError, EngineError
from engine.shown_text import shown_line

_LOOK_S = 0.2
#: seconds in which an ending process stops its tasks and signs off
_LEAVE_S = 60.0
#: seconds in which one that is there has registered again, at another leader too
_UNHEARD_S = 30.0
_COLUMNS = "{:34}{:10}{:>7}{:>7}{:>12}{:>22}  {:10}{}"


def list_task_managers(options: argparse.Namespace, client: ClusterClient) -> int:
    """Print a line for each TaskManager."""
    found = [document for each in _registered(client) if (document := _details_of(client, each["id"])) is not None]
    if options.json:
        print(json.dumps({"taskmanagers": found}))
        return 0
    print(_COLUMNS.format("ID", "STATE", "SLOTS", "TASKS", "MEMORY", "DISK", "VERSION", "HOST"))
    for each in found:
        metrics = each["metrics"]
        print(
            _COLUMNS.format(
                shown_line(each["id"]),
                each["state"],
                f"{each['slotsNumber'] - each['freeSlots']}/{each['slotsNumber']}",
                f"{metrics.get('Status.Tasks.Running', 0):.0f}",
                format_bytes(int(metrics.get("Status.Process.Memory.Resident", 0))),
                _disk(metrics),
                shown_line(each["version"]),
                shown_line(each["host"]),
            ).rstrip()
        )
    return 0


def _details_of(client: ClusterClient, resource_id: str) -> dict[str, Any] | None:
    """Return everything about a TaskManager; None: it has left since it was listed."""
    try:
        found: dict[str, Any] = client.document(f"/taskmanagers/{resource_id}")
    except EngineError:
        if any(each["id"] == resource_id for each in _registered(client)):
            raise
        return None
    return found


def _disk(metrics: Mapping[str, float]) -> str:
    """Return the bytes of a TaskManager's files: of its limits where it has some, else beside what is free."""
    limit = sum(value for name, value in metrics.items() if name.startswith("Status.Disk.Limit."))
    if limit:
        taken = sum(value for name, value in metrics.items() if name.startswith("Status.Disk.Counted."))
        return f"{format_bytes(int(taken))} of {format_bytes(int(limit))}"
    used, free = (metrics.get(f"Status.Disk.{name}") for name in ("Used", "Free"))
    return "?" if used is None or free is None else f"{format_bytes(int(used))}, {format_bytes(int(free))} free"


def drain_task_manager(options: argparse.Namespace, client: ClusterClient) -> int:
    """Begin to drain a TaskManager."""
    resource_id = _one(client, options.taskmanager_id)
    client.change(f"/taskmanagers/{resource_id}?mode=drain")
    _say(options, resource_id, _state_at_end(client, resource_id, None) if options.wait else "DRAINING")
    return 0


def stop_task_manager(options: argparse.Namespace, client: ClusterClient) -> int:
    """Drain a TaskManager for a limited time, and wait for its end."""
    resource_id = _one(client, options.taskmanager_id)
    client.change(f"/taskmanagers/{resource_id}?mode=stop&timeout={options.timeout:g}")
    _say(options, resource_id, _state_at_end(client, resource_id, options.timeout + _LEAVE_S))
    return 0


def _registered(client: ClusterClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.document("/taskmanagers")["taskmanagers"]
    return found


def _one(client: ClusterClient, text: str) -> str:
    """Return the id that begins with what a person wrote."""
    ids = [str(each["id"]) for each in _registered(client)]
    found = [each for each in ids if each.startswith(text)] if text else []
    if len(found) != 1:
        why = f"{len(found)} ids begin with it" if found else f"no TaskManager of the {len(ids)} has it"
        raise ConfigurationError(f"{text!r} names no TaskManager: {why} (flink-run taskmanager list shows them)")
    return found[0]


def _state_at_end(client: ClusterClient, resource_id: str, limit_s: float | None) -> str:
    """Wait for the end of a TaskManager; return GONE, or LOST when it was not heard of for long."""
    began_s = heard_s = time.monotonic()
    while True:
        found, now_s = client.document("/taskmanagers"), time.monotonic()
        if resource_id in found.get("left", ()):
            return "GONE"
        if any(each["id"] == resource_id for each in found["taskmanagers"]):
            heard_s = now_s
        if now_s - heard_s > _UNHEARD_S:
            return "LOST"
        if limit_s is not None and now_s - began_s > limit_s:
            raise EngineError(f"TaskManager {resource_id} has not ended within {limit_s:g} s: its log says why")
        time.sleep(_LOOK_S)


def _say(options: argparse.Namespace, resource_id: str, state: str) -> None:
    if options.json:
        print(json.dumps({"id": resource_id, "state": state}))
    elif state == "GONE":
        print(f"TaskManager {resource_id} has ended.")
    elif state == "LOST":
        print(f"TaskManager {resource_id} was lost, or ended while no JobManager led: no leader has heard of it since.")
    else:
        print(f"TaskManager {resource_id} drains: it ends once no task and no result of a job is left on it.")
