"""The commit of a job's data files to a table: once for each job, however often it is repeated.

    committed(options, folder, files, job_id, mode) -> snapshot id
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

import msgspec
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
from engine.iceberg_tables.file_statistics import FileStatistics, NewFiles, decoded_statistics, patched_data_file
from engine.iceberg_tables.planned_files import PlannedFile, only_path
from engine.iceberg_tables.snapshot_files import FileChange, SnapshotFiles, snapshot_of_job
from engine.iceberg_tables.third_version import VERSION, creating, writing
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
    catalog = writing_if_third(options)
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


def writing_if_third(options: WriteOptions) -> Any:
    """Return the catalog of a table, able to commit to it."""
    catalog = opened(options.catalog, _CALL)
    return writing(catalog) if options.properties.get("format-version") == str(VERSION) else catalog


def _table(catalog: Any, name: str) -> Any:
    try:
        return catalog.load_table(name)
    except NoSuchTableError:
        return None


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
        transaction = creating(
            # It takes the version out of what it is given.
            catalog.create_table_transaction(
                options.table, schema, options.location, spec, order, dict(options.properties)
            )
        )
    else:
        transaction = table.transaction()
    metadata = transaction.table_metadata
    _check(metadata, schema, spec, options)
    number = order.order_id if order.order_id else None
    rewrite = None if options.rewrite is None else _with_replaced(options.rewrite, files, options.table)
    new = NewFiles(folder, files, number, spec, schema)
    if rewrite is not None:
        change = _rewritten(table, rewrite, folder, new, files)
    elif mode == "overwrite":
        change = FileChange((), new, lambda _: True, drops_deletes=True)
    elif mode == "overwrite_partitions":
        gone = {tuple(each.partition._data) for each in new}
        change = FileChange((), new, lambda file: file.spec_id == spec.spec_id and tuple(file.partition._data) in gone)
    else:
        change = FileChange((), new)
    producer = SnapshotFiles(change, transaction, job_id)
    producer.commit()
    transaction.commit_transaction()
    return producer.snapshot_id


def _rewritten(
    table: Any, rewrite: Rewrite, folder: str, new: Iterable[DataFile], files: Sequence[DecidedFile]
) -> FileChange:
    """Return the change of files and of deleted rows. Raises: JobExecutionError (other writers)."""
    places = _deleted_places(files)
    there = checked_files(table, rewrite, places)
    patched = _patched(table.metadata, rewrite, folder, files, there) if rewrite.patched_files else ()
    deletes = [with_former(there[path], found) for path, found in places.items()]
    written = delete_files(
        folder, f"{DELETES}{uuid4().hex}", deletes, as_vectors=table.metadata.format_version >= VERSION
    )
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
        [*patched, *written],
        new,
        None if is_appended else is_gone,
        drops_deletes=drops,
        changes_data=rewrite.changes_data,
    )


def _with_replaced(rewrite: Rewrite, files: Sequence[DecidedFile], name: str) -> Rewrite:
    """Return a rewrite with the files in whose place others are. Raises: JobExecutionError (a row changes twice)."""
    if not rewrite.patched_files:
        return rewrite
    told = [found for file in files if (found := decoded_statistics(file)).replaces]
    removed = tuple(sorted(each.replaces for each in told))
    if len({*removed}) < len(removed) or any(each.is_ambiguous for each in told):
        raise JobExecutionError(
            f"table {name}: rows of the source have the same key as one row of the table, or were others when they"
            " were read again; nothing was changed"
        )
    return msgspec.structs.replace(rewrite, removed=removed)


def _patched(
    metadata: Any, rewrite: Rewrite, folder: str, files: Sequence[DecidedFile], there: Mapping[str, PlannedFile]
) -> Iterator[DataFile]:
    """Yield the files that are in the place of others; one whose rows have all gone has none."""
    changed = {metadata.schema().find_field(name).field_id for name in rewrite.patched_columns}
    orders = {each.order_id: {field.source_id for field in each.fields} for each in metadata.sort_orders}
    for file in files:
        path = decoded_statistics(file).replaces
        if path and file.row_count:
            former = there[path].file
            keeps_order = not changed & orders.get(former.sort_order_id, set())
            yield patched_data_file(f"{folder}/{file.name}", file, former, keeps_order=keeps_order)


def _changes(rewrite: Rewrite, files: Sequence[DecidedFile]) -> bool:
    """Return whether the table is another one after a rewrite."""
    told = (decoded_statistics(file) for file in files if not file.row_count)
    return bool(rewrite.removed or any(file.row_count for file in files) or any(_has_change(each) for each in told))


def _has_change(told: FileStatistics) -> bool:
    return bool(told.deleted or told.replaces)


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
        "files_removed": len(options.rewrite.removed) + sum(bool(decoded_statistics(file).replaces) for file in files),
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
