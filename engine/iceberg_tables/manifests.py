"""Manifests of a snapshot with all fields of their entries, also those that pyiceberg's own calls leave out.

    manifests_of(io, snapshot) -> manifests
    entries_of(io, manifest) -> entries that are not deleted, with the numbers that they inherit
    EntryWriter(...)         writes a manifest of data files, or of deletes
    data_file_of(**values)   a file as entries have it

pyiceberg reads and writes entries as of the second version, which does not know where deletion vectors lie, and which
data file a file of deletes is for. Here all entries in memory are those of the third version.

Held by: tests/iceberg_tables/test_row_deletes.py
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pyiceberg import manifest as manifests
from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)

from engine.iceberg_tables.third_version import first_row_of

#: the version whose fields entries have in memory
LAYOUT: Final = 3
#: place of the id of a data file's first row among its fields
FIRST_ROW_ID: Final = 16


def manifests_of(io: Any, snapshot: Any) -> list[ManifestFile]:
    """Return the manifests of a snapshot."""
    with AvroFile[ManifestFile](
        io.new_input(snapshot.manifest_list),
        manifests.MANIFEST_LIST_FILE_SCHEMAS[LAYOUT],
        read_types={-1: ManifestFile, 508: manifests.PartitionFieldSummary},
        read_enums={517: ManifestContent},
    ) as found:
        return list(found)


def entries_of(io: Any, manifest: ManifestFile) -> list[ManifestEntry]:
    """Return the entries of a manifest that are not deleted."""
    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        manifests.MANIFEST_ENTRY_SCHEMAS[LAYOUT],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as found:
        left = [
            manifests._inherit_from_manifest(entry, manifest)
            for entry in found
            if entry.status != ManifestEntryStatus.DELETED
        ]
    row_id = first_row_of(manifest)
    if row_id is not None and manifest.content == ManifestContent.DATA:
        for entry in left:
            if entry.data_file[FIRST_ROW_ID] is None:
                entry.data_file[FIRST_ROW_ID] = row_id
                row_id += entry.data_file.record_count
    return left


def data_file_of(spec_id: int, **values: Any) -> DataFile:
    """Return a file of a partition specification."""
    file = DataFile.from_args(LAYOUT, **values)
    file.spec_id = spec_id
    return file


def entry_of(
    status: ManifestEntryStatus, snapshot_id: int | None, file: DataFile, known: ManifestEntry | None = None
) -> ManifestEntry:
    """Return an entry; ``known``: one of the same file, which has its sequence numbers."""
    numbers = (
        {}
        if known is None
        else {
            "sequence_number": known.sequence_number,
            "file_sequence_number": known.file_sequence_number,
        }
    )
    return ManifestEntry.from_args(LAYOUT, status=status, snapshot_id=snapshot_id, data_file=file, **numbers)


class EntryWriter(ManifestWriterV2):
    """Writes a manifest of a table of any version."""

    def __init__(self, table_version: int, content: ManifestContent, *args: Any) -> None:
        super().__init__(*args)
        self._table_version, self._content = table_version, content

    @property
    def version(self) -> Any:
        """The version of the table."""
        return self._table_version

    def content(self) -> ManifestContent:
        """Return the content of the files: data or deletes."""
        return self._content

    @property
    def _meta(self) -> dict[str, str]:
        word = "data" if self._content == ManifestContent.DATA else "deletes"
        return {**super()._meta, "content": word}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        """Return the writer of entries; those of deletes have the fields of the third version in the second, too."""
        layout: Any = self._table_version if self._content == ManifestContent.DATA else LAYOUT
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=self._with_partition(layout),
            record_schema=self._with_partition(LAYOUT),
            schema_name="manifest_entry",
            metadata=self._meta,
        )

    def written(self, entries: Iterable[ManifestEntry]) -> ManifestFile:
        """Write entries, and return the manifest."""
        with self:
            for entry in entries:
                self.add_entry(entry)
        return self.to_manifest_file()
