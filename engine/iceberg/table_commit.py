"""The commit of a job's data files to a table: once for each job, however often it is repeated.

    committed(options, files, job_id, mode) -> snapshot id
    snapshot_of_job(table, job_id)          -> the snapshot that a job has committed, None before

    append                  the files are added
    overwrite               all files that are there go
    overwrite_partitions    files of the partitions that the new ones are in go
    error                   the table is made, with the files in it

The job's id is in the summary of its snapshot (``drey.job-id``), where it is looked for first. Where another writer was
faster, the table is read again, and the files that go are those that are there then. What other writers added to a
partition meanwhile is replaced too: the replacement is of the table as it is when it is committed.

Held by: tests/iceberg/test_table_commit.py
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationException,
)
from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update.snapshot import _SnapshotProducer

from engine.commit.decision import DecidedFile
from engine.commit.output_target import OutputTakenError
from engine.errors import JobExecutionError
from engine.iceberg.catalog_place import opened
from engine.iceberg.file_statistics import data_file
from engine.iceberg.write_options import WriteOptions

JOB_ID: Final = "drey.job-id"
_CALL: Final = "write_iceberg"
#: commits that are tried against other writers, and the longest wait between two of them
_TRIES: Final = 30
_WAIT_S_MAX: Final = 5.0


def committed(options: WriteOptions, folder: str, files: Sequence[DecidedFile], job_id: str, mode: str) -> int:
    """Commit files of a job, if that has not been done; return the snapshot. Raises: JobExecutionError."""
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
    added = [data_file(f"{folder}/{file.name}", file, options, number, spec, schema) for file in files]
    if mode not in ("overwrite", "overwrite_partitions"):
        is_replaced: Callable[[DataFile], bool] | None = None
    elif mode == "overwrite":
        is_replaced = _any_file
    else:
        gone = {tuple(each.partition._data) for each in added}
        is_replaced = lambda file: file.spec_id == spec.spec_id and tuple(file.partition._data) in gone  # noqa: E731
    producer = _Files(is_replaced, transaction, job_id)
    for each in added:
        producer.append_data_file(each)
    producer.commit()
    transaction.commit_transaction()
    return producer.snapshot_id


def _any_file(file: DataFile) -> bool:
    return True


def _check(metadata: Any, schema: Schema, spec: PartitionSpec, options: WriteOptions) -> None:
    """Raise JobExecutionError where files no longer fit the table."""
    known = {field.field_id: field.field_type for field in metadata.schema().fields}
    gone = [field.name for field in schema.fields if field.field_id not in known]
    if gone or metadata.spec() != spec:
        changed = f"lost the columns {', '.join(gone)}" if gone else f"is partitioned by {metadata.spec()}"
        raise JobExecutionError(
            f"table {options.table} {changed} since the job was planned, and the files do not fit it; run the job again"
        )


class _Files(_SnapshotProducer["_Files"]):
    """A snapshot with files added, and others left out."""

    def __init__(self, is_replaced: Callable[[DataFile], bool] | None, transaction: Any, job_id: str) -> None:
        operation = Operation.APPEND if is_replaced is None else Operation.OVERWRITE
        super().__init__(operation, transaction, transaction._table.io, snapshot_properties={JOB_ID: job_id})
        self._is_replaced = is_replaced
        self._kept: list[ManifestFile] = []

    def _validate_concurrency(self) -> None:
        """Do no check: the files that are replaced are found anew for each attempt."""

    def _manifests(self) -> list[ManifestFile]:
        """Return the manifests of the snapshot; pyiceberg's own call would leave threads behind."""
        deleted = self._deleted_entries()
        found = []
        if self._added_data_files:
            found.append(
                self._written(self._transaction.table_metadata.spec(), map(self._added, self._added_data_files))
            )
        for spec_id in sorted({entry.data_file.spec_id for entry in deleted}):
            entries = (entry for entry in deleted if entry.data_file.spec_id == spec_id)
            found.append(self._written(self.spec(spec_id), entries))
        return [*found, *self._kept]

    def _written(self, spec: PartitionSpec, entries: Iterable[ManifestEntry]) -> ManifestFile:
        with self.new_manifest_writer(spec) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def _added(self, file: DataFile) -> ManifestEntry:
        return ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=self.snapshot_id, data_file=file)

    def _existing_manifests(self) -> list[ManifestFile]:
        return self._kept

    def _deleted_entries(self) -> list[ManifestEntry]:
        """Return the entries of files that go, and keep the manifests of the others."""
        self._deleted_data_files, self._kept = set(), []
        parent = self._transaction.table_metadata.snapshot_by_name(self._target_branch or "main")
        deleted = []
        for manifest in () if parent is None else parent.manifests(self._io):
            deleted += self._deleted_of(manifest)
        return deleted

    def _deleted_of(self, manifest: ManifestFile) -> list[ManifestEntry]:
        if self._is_replaced is None:
            self._kept.append(manifest)
            return []
        is_data = manifest.content == ManifestContent.DATA
        if not is_data and self._is_replaced is not _any_file:
            self._kept.append(manifest)
            return []
        entries = self.fetch_manifest_entry(manifest)
        gone = [entry for entry in entries if self._is_replaced(entry.data_file)]
        left = [entry for entry in entries if not self._is_replaced(entry.data_file)]
        self._deleted_data_files.update(entry.data_file for entry in gone)
        if not gone:
            self._kept.append(manifest)
        elif left:
            kept = (self._with_status(entry, ManifestEntryStatus.EXISTING, entry.snapshot_id) for entry in left)
            self._kept.append(self._written(self.spec(manifest.partition_spec_id), kept))
        # Deletes of files that are gone are left out with them.
        status = ManifestEntryStatus.DELETED
        return [self._with_status(entry, status, self.snapshot_id) for entry in gone] if is_data else []

    def _with_status(self, entry: ManifestEntry, status: ManifestEntryStatus, snapshot_id: int | None) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )
