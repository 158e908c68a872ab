"""Changes of other writers since a job has read a table, and whether its own change is right all the same.

    checked_files(table, rewrite, deleted places) -> the table's files now, by path

    a file that goes, or of which rows go     must be there, with the deletes that it had
    other files that came, went or changed    may have no row that the job has looked for, by the bounds of columns;
                                              a job that changes no rows looks for none

Otherwise nothing is changed, and the job is to be run again.

Held by: tests/iceberg_tables/test_merge.py
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa

from engine.errors import JobExecutionError
from engine.iceberg_tables.arrow_types import to_arrow
from engine.iceberg_tables.bounds import file_bounds
from engine.iceberg_tables.planned_files import FilePlan, PlannedFile, planned
from engine.iceberg_tables.write_options import Rewrite
from engine.records.arrow_functions import pc
from engine.statistics.bounds_predicate import highest, lowest

_CALL = "merge_into"


def checked_files(table: Any, rewrite: Rewrite, marked: Collection[str]) -> dict[str, PlannedFile]:
    """Return the files of a table as it is now. Raises: JobExecutionError where a rewrite would not be right."""
    metadata = table.metadata
    snapshot = metadata.current_snapshot()
    now = planned(table, snapshot, _CALL)
    there = {each.file.file_path: each for each in now.files}
    if (None if snapshot is None else snapshot.snapshot_id) == rewrite.snapshot_id:
        return there
    name = ".".join(table.name())
    read = None if rewrite.snapshot_id is None else metadata.snapshot_by_id(rewrite.snapshot_id)
    if read is None and rewrite.snapshot_id is not None:
        raise JobExecutionError(f"table {name}: {_since(rewrite)} expired while this job ran: run it again")
    before = planned(table, read, _CALL)
    touched = {*rewrite.removed, *marked}
    changed = _changed(before, now)
    if any(each.file.file_path in touched for each in changed):
        raise JobExecutionError(
            f"table {name}: another writer has changed files that this job rewrites since {_since(rewrite)}; nothing"
            " was changed: run it again"
        )
    if rewrite.changes_data and _may_match(metadata, changed, rewrite):
        raise JobExecutionError(
            f"table {name}: another writer has changed rows since {_since(rewrite)}, with which this job has compared"
            " its own; nothing was changed: run it again"
        )
    return there


def _since(rewrite: Rewrite) -> str:
    return "it was without rows" if rewrite.snapshot_id is None else f"snapshot {rewrite.snapshot_id}"


def _changed(before: FilePlan, now: FilePlan) -> list[PlannedFile]:
    """Return the files that have come or gone, or whose deleted rows are others."""
    states = [{(each.file.file_path, deletes_of(each, plan)): each for each in plan.files} for plan in (before, now)]
    return [each for own, other in (states, states[::-1]) for state, each in own.items() if state not in other]


def deletes_of(file: PlannedFile, plan: FilePlan) -> tuple[Any, ...]:
    """Return a value that two states of a file share if the same of its rows are deleted."""
    if not file.has_deletes:
        return ()
    keys = tuple(sorted(each.file.file_path for each in plan.equality_deletes)) if file.equality else ()
    return (str(file.known_deletes()), keys)


def _may_match(metadata: Any, files: list[PlannedFile], rewrite: Rewrite) -> bool:
    """Return whether one of some files may have a row that was looked for."""
    if not files or not rewrite.looked_for:
        return bool(files)
    schema = to_arrow(metadata.schema(), _CALL)
    bounds = file_bounds(metadata, files, schema, [name for name, _, _ in rewrite.looked_for])
    is_ruled_out = pa.repeat(pa.scalar(False), len(files))
    for name, low, high in rewrite.looked_for:
        data_type = schema.field(name).type
        first, last = (pc.cast(pa.array([text]), data_type)[0] for text in (low, high))
        beside = pc.or_(pc.less(bounds[highest(name)], first), pc.greater(bounds[lowest(name)], last))
        is_ruled_out = pc.or_(is_ruled_out, pc.fill_null(beside, False))
    return not pc.all(is_ruled_out).as_py()
