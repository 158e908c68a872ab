"""SnapshotFiles: the snapshot of a commit, with files added and others left out.

    change = FileChange(added, is_gone)     added: data files and files of deletes; is_gone: of files that are there
    SnapshotFiles(change, transaction, job id).commit()

A manifest without a file that goes is taken over as it is. Where some go, the others are in a new manifest. Files of
deletes that go are not told of any more, data files are entries of their own as deleted ones.

Held by: tests/iceberg_tables/test_table_commit.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _SnapshotProducer

from engine.iceberg_tables.manifests import EntryWriter, entries_of, entry_of

JOB_ID: Final = "drey.job-id"


class FileChange(NamedTuple):
    """The files that come, and those that go."""

    added: Sequence[DataFile] = ()
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
        self._change = change
        self._added_data_files = list(change.added)
        self._kept: list[ManifestFile] = []

    def _validate_concurrency(self) -> None:
        """Do no check: what the change needs to be so was looked at when it was made for the present table."""

    def _refresh_for_retry(self) -> None:
        """End this try; pyiceberg's own next one would take the change for right without looking at what came first."""
        raise ValidationException("another writer was first")

    def _summary(self, snapshot_properties: Any = ()) -> Summary:
        found = super()._summary(dict(snapshot_properties))
        if self._change.changes_data:
            return found
        return Summary(Operation.REPLACE, **found.additional_properties)

    def _manifests(self) -> list[ManifestFile]:
        """Return the manifests of the snapshot; pyiceberg's own call would leave threads behind."""
        deleted = self._deleted_entries()
        status = ManifestEntryStatus.ADDED
        added = [entry_of(status, self.snapshot_id, file) for file in self._added_data_files]
        data = [entry for entry in added if entry.data_file.content == DataFileContent.DATA]
        deletes = [entry for entry in added if entry.data_file.content != DataFileContent.DATA]
        return [
            *self._by_spec(data, ManifestContent.DATA),
            *self._by_spec(deletes, ManifestContent.DELETES),
            *self._by_spec(deleted, ManifestContent.DATA),
            *self._kept,
        ]

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

    def _existing_manifests(self) -> list[ManifestFile]:
        return self._kept

    def _deleted_entries(self) -> list[ManifestEntry]:
        """Return the entries of data files that go, and keep the manifests of the others."""
        self._deleted_data_files, self._kept = set(), []
        parent = self._transaction.table_metadata.snapshot_by_name(self._target_branch or "main")
        deleted = []
        for manifest in () if parent is None else parent.manifests(self._io):
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
