"""The commit of a job's data files to a table: once for each job, however often it is repeated.

    committed(options, folder, files, job_id, mode) -> snapshot id
    snapshot_of_job(table, job_id)                  -> the snapshot that a job has committed, None before
    facts_of(options, files, snapshot id)           -> what a rewrite says of itself

    append                  the files are added
    overwrite               all files that are there go
    overwrite_partitions    files of the partitions that the new ones are in go
    error                   the table is made, with the files in it
    rewrite                 files that the job has read go, or rows of them (``delete_files``), and the files are added

The job's id is in the summary of its snapshot (``drey.job-id``), where it is looked for first. Where another writer was
faster, the table is read again, and the files that go are those that are there then. What other writers added to a
partition meanwhile is replaced too: the replacement is of the table as it is when it is committed. A rewrite is of the
table as it was read (``concurrent_changes``).

Held by: tests/iceberg_tables/test_table_commit.py
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortOrder
from pyroaring import BitMap64

from engine.commit.decision import DecidedFile
from engine.commit.output_target import OutputTakenError
from engine.errors import JobExecutionError
from engine.iceberg_tables.catalog_place import opened
from engine.iceberg_tables.concurrent_changes import checked_files
from engine.iceberg_tables.delete_files import delete_files, with_former
from engine.iceberg_tables.file_statistics import data_file, decoded_statistics
from engine.iceberg_tables.planned_files import only_path
from engine.iceberg_tables.snapshot_files import JOB_ID, FileChange, SnapshotFiles
from engine.iceberg_tables.write_options import Rewrite, WriteOptions

#: begin of the names of files of deletes that a commit writes
DELETES: Final = "deletes-"
_CALL: Final = "write_iceberg"
#: commits that are tried against other writers, and the longest wait between two of them
_TRIES: Final = 30
_WAIT_S_MAX: Final = 5.0


def committed(options: WriteOptions, folder: str, files: Sequence[DecidedFile], job_id: str, mode: str) -> int:
    """Commit files of a job, if that has not been done; return the snapshot. Raises: JobExecutionError."""
    if options.rewrite is not None and not _changes(options.rewrite, files):
        return -1 if options.rewrite.snapshot_id is None else options.rewrite.snapshot_id
    catalog = opened(options.catalog, _CALL)
    for attempt in range(_TRIES):
        table = _table(catalog, options.table)
        known = None if table is None else snapshot_of_job(table, job_id)
        if known is not None:
            return known
        if table is not None and options.is_new:
            raise OutputTakenError(
                f"table {options.table} was made by another program while the job ran; it was left as it is"
            )
        try:
            return _commit(catalog, table, options, folder, files, job_id, mode)
        except (
            CommitFailedException,
            CommitStateUnknownException,
            TableAlreadyExistsError,
            ValidationException,
        ) as error:
            reason = str(error).partition("\n")[0]
        time.sleep(random.uniform(0, min(_WAIT_S_MAX, 0.05 * 2**attempt)))  # noqa: S311 - it is no secret
    raise JobExecutionError(
        f"table {options.table}: other writers were faster than each of {_TRIES} commits ({reason}); the files are"
        " there, and the job can be run again"
    )


def _table(catalog: Any, name: str) -> Any:
    try:
        return catalog.load_table(name)
    except NoSuchTableError:
        return None


def snapshot_of_job(table: Any, job_id: str) -> int | None:
    """Return the snapshot that a job has committed, None where there is none."""
    found = (each for each in reversed(table.metadata.snapshots) if each.summary and each.summary.get(JOB_ID) == job_id)
    snapshot = next(found, None)
    return None if snapshot is None else int(snapshot.snapshot_id)


def _commit(
    catalog: Any,
    table: Any,
    options: WriteOptions,
    folder: str,
    files: Sequence[DecidedFile],
    job_id: str,
    mode: str,
) -> int:
    schema = Schema.model_validate_json(options.schema_json)
    spec = PartitionSpec.model_validate_json(options.partition_json)
    order = SortOrder.model_validate_json(options.sort_json)
    if table is None:
        transaction = catalog.create_table_transaction(
            options.table, schema, options.location, spec, order, options.properties
        )
    else:
        transaction = table.transaction()
    metadata = transaction.table_metadata
    _check(metadata, schema, spec, options)
    number = order.order_id if order.order_id else None
    added = [data_file(f"{folder}/{file.name}", file, number, spec, schema) for file in files if file.row_count]
    if options.rewrite is not None:
        change = _rewritten(table, options.rewrite, folder, added, files)
    elif mode == "overwrite":
        change = FileChange(added, lambda _: True, drops_deletes=True)
    elif mode == "overwrite_partitions":
        gone = {tuple(each.partition._data) for each in added}
        change = FileChange(added, lambda file: file.spec_id == spec.spec_id and tuple(file.partition._data) in gone)
    else:
        change = FileChange(added)
    producer = SnapshotFiles(change, transaction, job_id)
    producer.commit()
    transaction.commit_transaction()
    return producer.snapshot_id


def _rewritten(
    table: Any, rewrite: Rewrite, folder: str, added: Sequence[DataFile], files: Sequence[DecidedFile]
) -> FileChange:
    """Return the change of files and of deleted rows. Raises: JobExecutionError (other writers)."""
    places = _deleted_places(files)
    there = checked_files(table, rewrite, places)
    deletes = [with_former(there[path], found) for path, found in places.items()]
    new = delete_files(folder, f"{DELETES}{uuid4().hex}", deletes)
    removed, marked = {*rewrite.removed}, {*places}

    def is_gone(file: DataFile) -> bool:
        if file.content == DataFileContent.DATA:
            return file.file_path in removed
        if file.content != DataFileContent.POSITION_DELETES:
            return False
        path = only_path(file)
        return path in removed or path in marked

    is_appended = not (removed or marked)
    drops = any(there[path].has_position_deletes for path in (*removed, *marked))
    return FileChange(
        [*added, *new], None if is_appended else is_gone, drops_deletes=drops, changes_data=rewrite.changes_data
    )


def _changes(rewrite: Rewrite, files: Sequence[DecidedFile]) -> bool:
    """Return whether the table is another one after a rewrite."""
    return bool(rewrite.removed) or any(file.row_count or decoded_statistics(file).deleted for file in files)


def _deleted_places(files: Sequence[DecidedFile]) -> dict[str, BitMap64]:
    """Return the places of rows that go, by their files."""
    found: dict[str, BitMap64] = {}
    for file in files:
        for path, bits in decoded_statistics(file).deleted.items():
            found[path] = found.get(path, BitMap64()) | BitMap64.deserialize(bits)
    return found


def facts_of(options: WriteOptions, files: Sequence[DecidedFile], snapshot_id: int) -> Mapping[str, int]:
    """Return the numbers of rows and files that a rewrite changes."""
    if options.rewrite is None:
        return {}
    facts = {
        "version": snapshot_id,
        "rows": sum(file.row_count for file in files),
        "files_added": sum(file.row_count > 0 for file in files),
        "files_removed": len(options.rewrite.removed),
    }
    for file in files:
        for name, count in decoded_statistics(file).counts.items():
            facts[name] = facts.get(name, 0) + count
    return facts


def _check(metadata: Any, schema: Schema, spec: PartitionSpec, options: WriteOptions) -> None:
    """Raise JobExecutionError where files no longer fit the table."""
    known = {field.field_id: field.field_type for field in metadata.schema().fields}
    gone = [field.name for field in schema.fields if field.field_id not in known]
    if gone or metadata.spec() != spec:
        changed = f"lost the columns {', '.join(gone)}" if gone else f"is partitioned by {metadata.spec()}"
        raise JobExecutionError(
            f"table {options.table} {changed} since the job was planned, and the files do not fit it; run the job again"
        )
