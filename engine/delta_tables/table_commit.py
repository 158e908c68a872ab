"""The commit of a job to a table's log: all of its files at once, and once, however often it is tried.

    check_table(place, options)            before the job: PlanError
    commit(output, job id) -> facts        version, files and rows; repeated, the same
    committed_files(place, job id)         names of the job's files that a commit of it has named

Each commit has the job's id as the id of an application's transaction, which the log keeps: where it is there, all is
done. A commit is made for one version and no other. Where another writer has that version, the log is read again, and
what goes is decided anew: an overwrite takes away what is there now. Files that a job has read and puts others in the
place of must still be there, and no rows may have come by which a merge would have been another one.

Source: the Delta transaction log protocol, "Transaction Identifiers".
Held by: tests/delta_tables/test_write_delta.py
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from engine.clock import SystemClock
from engine.commit.decision import DecidedFile, DecidedOutput
from engine.commit.output_target import OutputTakenError
from engine.delta_tables.library import library, plain_text, storage_options, told
from engine.delta_tables.log_actions import check_unchanged
from engine.delta_tables.table_change import TableChange, is_by_hand
from engine.delta_tables.table_log import file_place
from engine.delta_tables.table_rules import check_removal, check_writable
from engine.delta_tables.table_write import (
    PLACES,
    TableWrite,
    decoded,
    log_text,
    partition_values,
    required_names,
    written_file,
)
from engine.errors import JobExecutionError, PlanError
from engine.ids import JobId
from engine.storage.file_systems import file_system_of, is_folder

_CALL: Final = "write_delta"
#: key of a commit's information under which it says what the job did
_FACTS: Final = "drey"
#: commits of other writers that may come first, one after the other
_TRIES_MAX: Final = 50
#: commits that fail behind the same version, until it is clear that no other writer is the reason
_SAME_VERSION_MAX: Final = 4


def opened(place: str, call: str = _CALL) -> Any | None:
    """Return the library's table; None where there is none."""
    deltalake = library(call)
    with told(call, place):
        try:
            return deltalake.DeltaTable(place, storage_options=storage_options(place))
        except deltalake.exceptions.TableNotFoundError:
            return None


def check_table(place: str, options: str) -> None:
    """Raise PlanError, NotYetSupportedError for a table that cannot be written so."""
    write, table = decoded(options), opened(place)
    if table is None:
        if is_folder(place) and any(not each.name.startswith("drey-") for each in file_system_of(place).entries(place)):
            raise PlanError(f"{_CALL}({place!r}): there is a folder that is no Delta table; write to another place")
        if file_system_of(place).is_taken(place) and not is_folder(place):
            raise PlanError(f"{_CALL}({place!r}): there is a file; write to another place")
        return
    if write.mode == "error":
        raise PlanError(f"{_CALL}({place!r}): there is a table; pass mode='append' or mode='overwrite'")
    check_writable(table, place)
    if write.mode != "append" and write.changes_data and (write.removed or write.mode != "rewrite"):
        check_removal(table.metadata().configuration, place, _CALL)


def commit(output: DecidedOutput, job_id: JobId) -> Mapping[str, int | str]:
    """Commit a job's files, unless that was done; return what the commit says of itself.

    Raises: OutputTakenError (a table that was made by another), JobExecutionError (conflicts), ResourceError.
    """
    deltalake = library(_CALL)
    write, place = decoded(output.options), output.target
    _check_partitions(write, output)
    _check_row_count(write, output)
    tried: list[int] = []
    for attempt in range(_TRIES_MAX):
        table = opened(place)
        if table is not None:
            facts = _facts_of(table, job_id)
            if facts is not None:
                return facts
        with told(_CALL, place):
            try:
                return _committed(table, write, output, job_id)
            except deltalake.exceptions.CommitFailedError as error:
                # Another writer has made the version, and its log is read again; else there is another reason.
                tried.append(-1 if table is None else table.version())
                if tried[-_SAME_VERSION_MAX:] == [tried[-1]] * _SAME_VERSION_MAX:
                    raise JobExecutionError(
                        f"{_CALL}({place!r}): the table refuses the change: {plain_text(error)}"
                    ) from None
            except deltalake.exceptions.DeltaError:
                if table is not None or opened(place) is None:
                    raise
        time.sleep(random.uniform(0, min(1.0, 0.01 * 2**attempt)))  # noqa: S311 - writers that get out of step
    raise JobExecutionError(
        f"{_CALL}({place!r}): other writers have come first {_TRIES_MAX} times; run the job again when they are done"
    )


def _check_partitions(write: TableWrite, output: DecidedOutput) -> None:
    """Raise JobExecutionError for a null in a column of partitions that has none: no one could read the table."""
    required = [name for name in required_names(write.schema, ()) if name in write.partition_by]
    for file in output.files if required else ():
        values = partition_values(file, write)
        name = next((name for name in required if values[name] is None), None)
        if name is not None:
            raise JobExecutionError(f"{_CALL}({output.target!r}): column {name!r} has nulls, and none may be in it")


def _check_row_count(write: TableWrite, output: DecidedOutput) -> None:
    """Raise JobExecutionError where a merge has made more of a row than one."""
    if write.row_count is None:
        return
    written = [(file.row_count, written_file(file).counts) for file in output.files]
    found = sum(rows + counts.get("rows_deleted", 0) - counts.get("rows_inserted", 0) for rows, counts in written)
    if found != write.row_count:
        raise JobExecutionError(
            f"{output.target}: a merge has made {found} rows of {write.row_count}: rows of the source have the same key"
            " as one row of the table, or were others when they were read again; nothing was changed"
        )


def _committed(table: Any | None, write: TableWrite, output: DecidedOutput, job_id: JobId) -> dict[str, int | str]:
    from deltalake import CommitProperties, Schema, Transaction, exceptions
    from deltalake.transaction import RemoveAction, create_table_with_add_actions

    if table is not None and write.mode == "error":
        raise OutputTakenError(f"{_CALL}({output.target!r}): another program made the table while the job ran")
    if table is not None and write.new_columns:
        table = _with_columns(table, write, output.target)
    # Without changes of rows the change data feed has none of the version, whose rows came and went else.
    shown = write if _has_changes(write, output) else msgspec.structs.replace(write, changes_data=False)
    added = [_added(file, shown, output, job_id) for file in output.files if file.row_count]
    if write.patches:
        write = msgspec.structs.replace(write, removed=_replaced(output))
    gone = [] if table is None else _gone(table, write, added, output.target)
    if table is not None and write.patches and not added and not gone:
        return {**_facts(table, write, output, 0, 0), "version": table.version()}
    facts = _facts(table, write, output, len(added), len(gone))
    if table is not None and is_by_hand(table, write):
        by_hand = TableChange(table, shown, output, job_id, added, [str(each["path"]) for each in gone])
        if not by_hand.put(_FACTS, facts):
            raise exceptions.CommitFailedError("another writer has made the version")
        return facts
    how = CommitProperties(
        custom_metadata={_FACTS: json.dumps({"job": str(job_id), **facts})},
        max_commit_retries=0,
        app_transactions=[Transaction(str(job_id), 1, SystemClock().wall_ms())],
    )
    schema, keys = Schema.from_json(json.dumps(write.schema)), list(write.partition_by)
    if table is None:
        create_table_with_add_actions(
            output.target,
            schema,
            added,
            "error",
            keys,
            configuration=write.properties,
            storage_options=storage_options(output.target),
            commit_properties=how,
        )
        return facts
    if write.mode == "overwrite":
        table.create_write_transaction(added, "overwrite", schema, keys, commit_properties=how)
    else:
        now = SystemClock().wall_ms()
        removed = [
            RemoveAction(unquote(each["path"]), shown.changes_data, now, each["size_bytes"], each["texts"])
            for each in gone
        ]
        table.create_write_transaction([*added, *removed], "append", table.schema(), keys, commit_properties=how)
    return facts


def _has_changes(write: TableWrite, output: DecidedOutput) -> bool:
    """Return whether rows are others than before: files of a merge may be written anew without any that is."""
    return not write.merges or write.patches or any(any(written_file(file).counts.values()) for file in output.files)


def _replaced(output: DecidedOutput) -> tuple[str, ...]:
    """Return the files that are written anew. Raises: JobExecutionError for a row that changes twice."""
    files = [written for file in output.files if (written := written_file(file)).replaces]
    found = tuple(sorted(file.replaces for file in files))
    if len(set(found)) < len(found) or any(file.is_ambiguous for file in files):
        raise JobExecutionError(
            f"{output.target}: rows of the source have the same key as one row of the table, or were others when they"
            " were read again; nothing was changed"
        )
    return found


def _with_columns(table: Any, write: TableWrite, place: str) -> Any:
    """Return the table with columns that it did not have, by a commit of their own: they are null in all its rows."""
    from deltalake import Field

    there = {field["name"] for field in json.loads(table.schema().to_json())["fields"]}
    missing = [field for field in write.new_columns if field["name"] not in there]
    if not missing:
        return table
    table.alter.add_columns([Field.from_json(json.dumps(field)) for field in missing])
    return opened(place)


def _added(file: DecidedFile, write: TableWrite, output: DecidedOutput, job_id: JobId) -> Any:
    from deltalake.transaction import AddAction

    folder = output.staging.removeprefix(f"{output.target}/")
    return AddAction(
        f"{folder}/{file.name}",
        file.size_bytes,
        partition_values(file, write),
        SystemClock().wall_ms(),
        write.changes_data,
        written_file(file).statistics,
    )


def _gone(table: Any, write: TableWrite, added: Sequence[Any], place: str) -> list[Mapping[str, Any]]:
    """Return the files that go. Raises: JobExecutionError where what was read of the table is not so any more."""
    if write.mode in ("append", "error"):
        return []
    found = {each["path"]: each for each in table_files(table)}
    if write.mode == "overwrite":
        return list(found.values())
    if write.mode == "overwrite_partitions":
        filled = [each.partition_values for each in added]
        return [each for each in found.values() if each["texts"] in filled]
    check_unchanged(write, place, table.version(), {file_place(place, path) for path in write.removed})
    return [found[path] for path in write.removed]


def table_files(table: Any) -> list[dict[str, Any]]:
    """Return path and size of the files of a table, and the values of their partitions as texts of the log."""
    import pyarrow as pa

    from engine.records.arrow_functions import pc

    found = pa.table(table.get_add_actions(flatten=False))
    rows = found.select(["path", "size_bytes"]).to_pylist()
    known = json.loads(table.schema().to_json())
    for key in table.metadata().partition_columns:
        values = pc.struct_field(found.column("partition"), [found.column("partition").type.get_field_index(key)])
        for row, text in zip(rows, pc.cast(values, pa.string()).to_pylist(), strict=True):
            row.setdefault("texts", {})[key] = log_text(text, key, known)
    return [{"texts": {}, **row} for row in rows]


def _facts(
    table: Any | None, write: TableWrite, output: DecidedOutput, added: int, removed: int
) -> dict[str, int | str]:
    facts: dict[str, int | str] = {
        "version": 0 if table is None else table.version() + 1,
        "rows": sum(file.row_count for file in output.files),
        "files_added": added,
        "files_removed": removed,
    }
    for file in output.files:
        for name, count in written_file(file).counts.items():
            facts[name] = int(facts.get(name, 0)) + count
    return facts


def _facts_of(table: Any, job_id: JobId) -> dict[str, int | str] | None:
    """Return the facts that the commit of a job has told; None: there is no commit."""
    if table.transaction_version(str(job_id)) is None:
        return None
    for entry in table.history():
        facts: dict[str, int | str] = json.loads(entry.get(_FACTS) or "{}")
        if facts.pop("job", "") == str(job_id):
            return facts
    return {}


def committed_files(place: str, job_id: JobId) -> set[str]:
    """Return the names of a job's files that are of the table, or were until others took their place."""
    table = opened(place)
    if table is None or table.transaction_version(str(job_id)) is None:
        return set()
    folder = f"{place}/drey-{job_id}"
    walked = file_system_of(folder).walk(folder)
    found = {f"{inside}/{name}".removeprefix(f"{folder}/") for inside, _, names in walked for name in names}
    return {name for name in found if not name.endswith(PLACES)}
