"""Tables of the third version, which pyiceberg reads and does not write: metadata, lists of manifests, ids of rows.

    writing(catalog)                      the catalog, able to commit such tables; one whose server commits, as it is
    creating(transaction)                 a transaction that makes a table, able to make such one
    ListWriter(output, snapshot ids, sequence number, first id, codec)     a list of manifests
    .next_row_id                          behind the ids that the listed rows have

Each row has an id: the first of its manifest, more for each row before it. A manifest that is new gets its first one
when it is listed, as many behind it as it has rows. A snapshot says the first one of all, and how many it has given.
Metadata that says more than pyiceberg knows is not written, since that would be lost.

Source: Iceberg's specification, "Row Lineage".
Held by: tests/iceberg_tables/test_third_version.py
"""

from __future__ import annotations

import json
from copy import copy
from typing import Any, Final

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    ManifestContent,
    ManifestFile,
    ManifestListWriterV2,
)
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import UpgradeFormatVersionUpdate, _apply_table_update
from pyiceberg.typedef import IcebergBaseModel

from engine.errors import DataError, NotYetSupportedError

VERSION: Final = 3
#: place of the first row's id in a manifest of a list
_FIRST_ROW: Final = 15


class _Metadata(TableMetadataV3):
    """Metadata that can be written."""

    def model_dump_json(self, *args: Any, **options: Any) -> str:
        """Return the JSON of the metadata."""
        return IcebergBaseModel.model_dump_json(self, *args, **options)


def _writable(metadata: Any, **values: Any) -> _Metadata:
    return _Metadata.model_construct(**{**dict(metadata), "format_version": VERSION, **values})


class _ThirdVersionUpdate(UpgradeFormatVersionUpdate):
    """The step to this version in a change that makes a table; pyiceberg's own code knows no such step."""


@_apply_table_update.register(_ThirdVersionUpdate)
def _(_update: _ThirdVersionUpdate, base: Any, _context: Any) -> Any:
    return base


class _Commits:
    """The steps of a catalog that are others for tables of this version."""

    def _empty_table_metadata(self) -> Any:
        return _writable(super()._empty_table_metadata(), next_row_id=0, last_sequence_number=0)  # type: ignore[misc]

    def _update_and_stage_table(self, current: Any, identifier: Any, requirements: Any, updates: Any) -> Any:
        if current is not None:
            check_known(current, "write_iceberg")
            known = current.metadata
            current = copy(current)
            current.metadata = _writable(known, next_row_id=known.next_row_id or 0)
        # The version is that of the metadata already; pyiceberg knows no step to it.
        updates = tuple(each for each in updates if not isinstance(each, UpgradeFormatVersionUpdate))
        staged = super()._update_and_stage_table(current, identifier, requirements, updates)  # type: ignore[misc]
        staged.metadata = _writable(staged.metadata)
        return staged


def writing(catalog: Any) -> Any:
    """Return a catalog that commits tables of the third version."""
    if not isinstance(catalog, MetastoreCatalog) or isinstance(catalog, _Commits):
        return catalog
    kind: Any = type(f"Writing{type(catalog).__name__}", (_Commits, type(catalog)), {})
    found = kind.__new__(kind)
    found.__dict__.update(catalog.__dict__)
    return found


def creating(transaction: Any) -> Any:
    """Return a transaction that makes a table, of whatever version."""
    if transaction._table.metadata.format_version == VERSION:
        transaction._table.metadata = _writable(transaction._table.metadata, next_row_id=0)
        transaction._updates = tuple(
            _ThirdVersionUpdate.model_validate({"format-version": VERSION})
            if isinstance(each, UpgradeFormatVersionUpdate)
            else each
            for each in transaction._updates
        )
    return transaction


def check_known(table: Any, call: str) -> None:
    """Raise NotYetSupportedError for metadata that would be lost where a catalog writes it here, and not a server."""
    if table.metadata.format_version < VERSION or not isinstance(table.catalog, MetastoreCatalog):
        return
    with table.io.new_input(table.metadata_location).open() as stream:
        content = stream.read()
    if content[:2] == b"\x1f\x8b":
        import gzip

        content = gzip.decompress(content)
    found = json.loads(content)
    unknown = {name for name, value in found.items() if value} - _names_of(TableMetadataV3)
    for snapshot in found.get("snapshots", ()):
        unknown |= {name for name, value in snapshot.items() if value} - _names_of(Snapshot)
    name = ".".join(table.name())
    if unknown:
        raise NotYetSupportedError(
            f"{call}({name!r}): changing metadata with {', '.join(sorted(unknown))}, as they would be lost,"
        )
    if table.metadata.next_row_id is None and table.metadata.snapshots:
        raise DataError(f"{call}({name!r}): the table's metadata has no next-row-id, so that rows cannot be given ids")


def _names_of(model: Any) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


class ListWriter(ManifestListWriterV2):
    """Writes a list of manifests."""

    def __init__(
        self,
        output: Any,
        snapshot_ids: tuple[int, int | None],
        sequence_number: int,
        first_row_id: int,
        codec: Any,
    ) -> None:
        super().__init__(output, *snapshot_ids, sequence_number, codec)
        self._format_version = VERSION
        self._meta |= {"format-version": str(VERSION), "first-row-id": str(first_row_id)}
        self.next_row_id = first_row_id

    def __enter__(self) -> ListWriter:
        """Open the writer."""
        self._writer = AvroOutputFile[ManifestFile](
            output_file=self._output_file,
            record_schema=MANIFEST_LIST_FILE_SCHEMAS[VERSION],
            file_schema=MANIFEST_LIST_FILE_SCHEMAS[VERSION],
            schema_name="manifest_file",
            metadata=self._meta,
        )
        self._writer.__enter__()
        return self

    def prepare_manifest(self, manifest_file: ManifestFile) -> ManifestFile:
        """Return a manifest as the list has it: with its sequence number, and the id of its first row."""
        found = super().prepare_manifest(ManifestFile(*manifest_file._data[:_FIRST_ROW], first_row_of(manifest_file)))
        if found.content == ManifestContent.DATA and found[_FIRST_ROW] is None:
            found[_FIRST_ROW] = self.next_row_id
            self.next_row_id += (found.added_rows_count or 0) + (found.existing_rows_count or 0)
        return found


def first_row_of(manifest: ManifestFile) -> int | None:
    """Return the id of a manifest's first row, None where it has none yet."""
    return manifest[_FIRST_ROW] if len(manifest) > _FIRST_ROW else None
