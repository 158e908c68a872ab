"""Files that snapshots have changed, from one on: what ``read_changes`` reads of a table of Iceberg.

    steps_since(table, snapshot id or None) -> SnapshotStep of each snapshot behind it, oldest first

    added      files that the snapshot has and the one before has not: their rows have come
    removed    files that the one before has: their rows have gone
    marked     files of both, of which fewer rows are left: those rows have gone

Snapshots that only put rows into other files (operation "replace") are left out.

Held by: tests/iceberg_tables/test_changes.py
"""

from __future__ import annotations

from typing import Any, NamedTuple

from engine.errors import ConfigurationError, PlanError
from engine.iceberg_tables.concurrent_changes import deletes_of
from engine.iceberg_tables.planned_files import FilePlan, planned

_CALL = "read_changes"


class SnapshotStep(NamedTuple):
    """A snapshot, the one before it, and the paths of files."""

    before: Any
    snapshot: Any
    added: frozenset[str]
    removed: frozenset[str]
    marked: frozenset[str]


def steps_since(table: Any, since: int | None) -> list[SnapshotStep]:
    """Return the steps from a snapshot to the present one. Raises: PlanError, ConfigurationError."""
    if since is not None and (isinstance(since, bool) or not isinstance(since, int)):
        raise ConfigurationError(f"{_CALL}: since={since!r}: it is the number of a snapshot")
    steps = []
    for before, snapshot in _behind(table, since):
        operation = None if snapshot.summary is None else snapshot.summary.operation
        if operation is None or operation.value != "replace":
            steps.append(_step(table, before, snapshot))
    return steps


def _behind(table: Any, since: int | None) -> list[tuple[Any, Any]]:
    """Return the snapshots behind one, each with the one before it, oldest first."""
    metadata, found = table.metadata, []
    snapshot = metadata.current_snapshot()
    name = ".".join(table.name())
    history = ", ".join(str(each.snapshot_id) for each in metadata.snapshot_log[-5:]) or "none"
    while snapshot is not None and snapshot.snapshot_id != since:
        before = metadata.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
        if before is None and not _is_first(table, snapshot):
            raise PlanError(
                f"{_CALL}({name!r}): the snapshot before {snapshot.snapshot_id} has expired; begin behind one that is"
                f" there: since={snapshot.snapshot_id}"
            )
        found.append((before, snapshot))
        snapshot = before
    if snapshot is None and since is not None:
        raise PlanError(f"{_CALL}({name!r}): the table as it is now has no snapshot {since}; the last ones: {history}")
    return found[::-1]


def _is_first(table: Any, snapshot: Any) -> bool:
    """Return whether a table has begun with a snapshot; where older ones have expired, it may have no parent too."""
    made_it = {each.added_snapshot_id for each in snapshot.manifests(table.io)}
    return snapshot.parent_snapshot_id is None and made_it <= {snapshot.snapshot_id}


def _step(table: Any, before: Any, snapshot: Any) -> SnapshotStep:
    old, new = (planned(table, each, _CALL) for each in (before, snapshot))
    states = _states(old), _states(new)
    both = states[0].keys() & states[1].keys()
    return SnapshotStep(
        before,
        snapshot,
        frozenset(states[1].keys() - both),
        frozenset(states[0].keys() - both),
        frozenset(path for path in both if states[0][path] != states[1][path]),
    )


def _states(plan: FilePlan) -> dict[str, Any]:
    return {each.file.file_path: deletes_of(each, plan) for each in plan.files}
