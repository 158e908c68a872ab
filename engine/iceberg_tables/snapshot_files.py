"""SnapshotFiles: the snapshot of a commit, with files added and others left out.

    change = FileChange(added, is_gone)     added: data files and files of deletes; is_gone: of files that are there
    SnapshotFiles(change, transaction, job id).commit()
    snapshot_of_job(table, job_id)          the snapshot that a job has committed, None before

A manifest without a file that goes is taken over as it is. Where some go, the others are in a new manifest. Files of
deletes that go are not told of any more, data files are entries of their own as deleted ones.

Held by: tests/iceberg_tables/test_table_commit.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from pyiceberg.exceptions import ValidationException
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.table import TableProperties
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    UpdateMetrics,
    update_snapshot_summaries,
)
from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate
from pyiceberg.table.update.snapshot import _SnapshotProducer

from engine.iceberg_tables.manifests import EntryWriter, entries_of, entry_of, manifests_of
from engine.iceberg_tables.third_version import VERSION, ListWriter

JOB_ID: Final = "drey.job-id"
_UNCOUNTED: Final = UpdateMetrics()


def snapshot_of_job(table: Any, job_id: str) -> int | None:
    """Return the snapshot that a job has committed, None where there is none."""
    found = (each for each in reversed(table.metadata.snapshots) if each.summary and each.summary.get(JOB_ID) == job_id)
    snapshot = next(found, None)
    return None if snapshot is None else int(snapshot.snapshot_id)


class _Counts(SnapshotSummaryCollector):
    """The numbers of a summary; those of single partitions where the table wants them."""

    def update_partition_metrics(self, partition_spec: Any, file: DataFile, is_add_file: bool, schema: Any) -> None:
        """Count a file for its partition, or note the partition alone."""
        if self.max_changed_partitions_for_summaries:
            super().update_partition_metrics(partition_spec, file, is_add_file, schema)
        else:
            self.partition_metrics[partition_spec.partition_to_path(file.partition, schema)] = _UNCOUNTED


class FileChange(NamedTuple):
    """The files that come, and those that go."""

    added: Sequence[DataFile] = ()
    #: data files of one specification beside them: made each time they are looked at, since many do not fit in memory
    new: Iterable[DataFile] = ()
    #: function that says whether a data file, or a file of deletes, goes; None: none does
    is_gone: Callable[[DataFile], bool] | None = None
    #: flag of files of deletes that may go, so that their manifests are to be looked at
    drops_deletes: bool = False
    #: flag of rows that are others than before
    changes_data: bool = True


class SnapshotFiles(_SnapshotProducer["SnapshotFiles"]):
    """See the module's text."""

    def __init__(self, change: FileChange, transaction: Any, job_id: str) -> None:
        super().__init__(
            Operation.APPEND if change.is_gone is None else Operation.OVERWRITE,
            transaction,
            transaction._table.io,
            snapshot_properties={JOB_ID: job_id},
        )
        # Each try has names of its own, by which what it leaves can be found.
        self.commit_uuid: Any = f"{job_id}-{self.commit_uuid}"
        self._change = change
        self._kept: list[ManifestFile] = []

    def _validate_concurrency(self) -> None:
        """Do no check: what the change needs to be so was looked at when it was made for the present table."""

    def _refresh_for_retry(self) -> None:
        """End this try; pyiceberg's own next one would take the change for right without looking at what came first."""
        raise ValidationException("another writer was first")

    def _summary(self, snapshot_properties: Any = ()) -> Summary:
        """Return the summary; pyiceberg's own call would hold all files, and metrics of each partition."""
        metadata: Any = self._transaction.table_metadata
        schema, specs = metadata.schema(), metadata.specs()
        name, limit = (
            TableProperties.WRITE_PARTITION_SUMMARY_LIMIT,
            TableProperties.WRITE_PARTITION_SUMMARY_LIMIT_DEFAULT,
        )
        counted = _Counts(int(metadata.properties.get(name, limit)))
        for file in chain(self._change.added, self._change.new):
            counted.add_file(file, schema, specs[file.spec_id])
        for file in self._deleted_data_files:
            counted.remove_file(file, schema, specs[file.spec_id])
        before = metadata.snapshot_by_id(self._parent_snapshot_id) if self._parent_snapshot_id is not None else None
        summary = Summary(self._operation, **counted.build(), **dict(snapshot_properties))
        found = update_snapshot_summaries(summary, None if before is None else before.summary)
        if self._change.changes_data:
            return found
        return Summary(Operation.REPLACE, **found.additional_properties)

    def _manifests(self) -> list[ManifestFile]:
        """Return the manifests of the snapshot; pyiceberg's own call would leave threads behind."""
        deleted = self._deleted_entries()
        status = ManifestEntryStatus.ADDED
        added = [entry_of(status, self.snapshot_id, file) for file in self._change.added]
        data = [entry for entry in added if entry.data_file.content == DataFileContent.DATA]
        deletes = [entry for entry in added if entry.data_file.content != DataFileContent.DATA]
        return [
            *self._of_new(),
            *self._by_spec(data, ManifestContent.DATA),
            *self._by_spec(deletes, ManifestContent.DELETES),
            *self._by_spec(deleted, ManifestContent.DATA),
            *self._kept,
        ]

    def _of_new(self) -> list[ManifestFile]:
        """Return the manifest of new data files, if there are any."""
        for first in self._change.new:
            status = ManifestEntryStatus.ADDED
            entries = (entry_of(status, self.snapshot_id, file) for file in self._change.new)
            return [self._written(first.spec_id, ManifestContent.DATA, entries)]
        return []

    def _by_spec(self, entries: Sequence[ManifestEntry], content: ManifestContent) -> list[ManifestFile]:
        return [
            self._written(number, content, [each for each in entries if each.data_file.spec_id == number])
            for number in sorted({entry.data_file.spec_id for entry in entries})
        ]

    def _written(self, spec_id: int, content: ManifestContent, entries: Iterable[ManifestEntry]) -> ManifestFile:
        metadata = self._transaction.table_metadata
        writer = EntryWriter(
            metadata.format_version,
            content,
            self.spec(spec_id),
            self.schema(),
            self.new_manifest_output(),
            self._snapshot_id,
            self._compression,
        )
        return writer.written(entries)

    def _commit(self) -> Any:
        """Return the updates of the table, and what they require; pyiceberg writes the lists of older versions."""
        metadata: Any = self._transaction.table_metadata
        if metadata.format_version < VERSION:
            return super()._commit()
        place = self._transaction._table.location_provider().new_metadata_location(
            f"snap-{self._snapshot_id}-0-{self.commit_uuid}.avro"
        )
        self._written_manifest_lists.append(place)
        manifests, first_row_id = self._manifests(), metadata.next_row_id or 0
        ids, number = (self._snapshot_id, self._parent_snapshot_id), metadata.next_sequence_number()
        with ListWriter(self._io.new_output(place), ids, number, first_row_id, self._compression) as listed:
            listed.add_manifests(manifests)
        branch = self._target_branch or "main"
        own = {"snapshot-id": self._snapshot_id, "parent-snapshot-id": self._parent_snapshot_id}
        told = {
            **own,
            "sequence-number": number,
            "manifest-list": place,
            "summary": self._summary(self.snapshot_properties),
            "schema-id": metadata.current_schema_id,
            "first-row-id": first_row_id,
            "added-rows": listed.next_row_id - first_row_id,
        }
        added = AddSnapshotUpdate(snapshot=Snapshot.model_validate(told))
        moved = SetSnapshotRefUpdate.model_validate({**own, "ref-name": branch, "type": SnapshotRefType.BRANCH})
        head = metadata.refs[branch].snapshot_id if branch in metadata.refs else None
        return (added, moved), (AssertRefSnapshotId.model_validate({"ref": branch, "snapshot-id": head}),)

    def _existing_manifests(self) -> list[ManifestFile]:
        return self._kept

    def _deleted_entries(self) -> list[ManifestEntry]:
        """Return the entries of data files that go, and keep the manifests of the others."""
        self._deleted_data_files, self._kept = set(), []
        parent = self._transaction.table_metadata.snapshot_by_name(self._target_branch or "main")
        deleted = []
        for manifest in () if parent is None else manifests_of(self._io, parent):
            deleted += self._deleted_of(manifest)
        return deleted

    def _deleted_of(self, manifest: ManifestFile) -> list[ManifestEntry]:
        is_data, is_gone = manifest.content == ManifestContent.DATA, self._change.is_gone
        if is_gone is None or not (is_data or self._change.drops_deletes):
            self._kept.append(manifest)
            return []
        entries = entries_of(self._io, manifest)
        gone = [entry for entry in entries if is_gone(entry.data_file)]
        self._deleted_data_files.update(entry.data_file for entry in gone)
        if not gone:
            self._kept.append(manifest)
        elif len(gone) < len(entries):
            left = [
                entry_of(ManifestEntryStatus.EXISTING, entry.snapshot_id, entry.data_file, entry)
                for entry in entries
                if not is_gone(entry.data_file)
            ]
            self._kept.append(self._written(manifest.partition_spec_id, manifest.content, left))
        status = ManifestEntryStatus.DELETED
        return [entry_of(status, self.snapshot_id, each.data_file, each) for each in gone] if is_data else []
