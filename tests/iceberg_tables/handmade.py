"""Delete files and tables of the third version, which pyiceberg does not write: with its own writers of manifests."""

from __future__ import annotations

import json
import struct
import time
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate
from pyiceberg.typedef import Record
from pyroaring import BitMap


class DeletesWriter(ManifestWriterV2):
    """Writes manifests of deletes, with the fields of the third version."""

    version = 3  # type: ignore[assignment]

    def content(self) -> ManifestContent:
        """Return the content."""
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}

    def new_writer(self) -> Any:
        """Return the writer of entries with all fields."""
        schema = self._with_partition(3)
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=schema,
            record_schema=schema,
            schema_name="manifest_entry",
            metadata=self._meta,
        )


def local(uri: str) -> str:
    """Return the path of a file URL."""
    return uri.removeprefix("file://")


def _delete_file(table: Any, path: str, **values: Any) -> DataFile:
    size = Path(path).stat().st_size
    known = {"file_format": FileFormat.PARQUET, "partition": Record(), "file_size_in_bytes": size, **values}
    file = DataFile.from_args(_table_format_version=3, file_path=f"file://{path}", **known)
    file.spec_id = table.spec().spec_id
    return file


def position_deletes(table: Any, rows: Sequence[tuple[str, int]], **values: Any) -> DataFile:
    """Return a file of position deletes: rows of (data file, position)."""
    path = f"{local(table.location())}/data/{uuid.uuid4()}-deletes.parquet"
    columns = pa.table(
        {"file_path": [each[0] for each in rows], "pos": pa.array([each[1] for each in rows], pa.int64())}
    )
    pq.write_table(columns, path)
    return _delete_file(table, path, content=DataFileContent.POSITION_DELETES, record_count=len(rows), **values)


def equality_deletes(table: Any, keys: pa.Table, ids: Sequence[int], **values: Any) -> DataFile:
    """Return a file of equality deletes: rows of keys, whose columns have some field ids."""
    path = f"{local(table.location())}/data/{uuid.uuid4()}-equality.parquet"
    fields = [
        field.with_metadata({"PARQUET:field_id": str(number)}) for field, number in zip(keys.schema, ids, strict=True)
    ]
    pq.write_table(keys.cast(pa.schema(fields)), path)
    known = {"content": DataFileContent.EQUALITY_DELETES, "equality_ids": list(ids), "record_count": keys.num_rows}
    return _delete_file(table, path, **known, **values)


def deletion_vector(table: Any, data_file: str, positions: Sequence[int], **values: Any) -> DataFile:
    """Return a Puffin file with a deletion vector, also of positions beyond 32 bits."""
    keys = sorted({each >> 32 for each in positions})
    maps = [(key, BitMap(each & 0xFFFFFFFF for each in positions if each >> 32 == key)) for key in keys]
    inner = b"\xd1\xd3\x39\x64" + struct.pack("<q", len(maps))
    inner += b"".join(struct.pack("<I", key) + bits.serialize() for key, bits in maps)
    blob = struct.pack(">I", len(inner)) + inner + struct.pack(">I", zlib.crc32(inner))
    path = Path(f"{local(table.location())}/data/{uuid.uuid4()}.puffin")
    path.write_bytes(b"PFA1" + blob)
    return _delete_file(
        table,
        str(path),
        content=DataFileContent.POSITION_DELETES,
        record_count=len(positions),
        referenced_data_file=data_file,
        content_offset=4,
        content_size_in_bytes=len(blob),
        **{**values, "file_format": FileFormat.PUFFIN},
    )


def add_deletes(table: Any, files: Sequence[DataFile]) -> None:
    """Commit a snapshot with delete files."""
    metadata = table.refresh().metadata
    parent, number = metadata.current_snapshot(), metadata.new_snapshot_id()
    folder = f"{table.location()}/metadata"
    output = table.io.new_output(f"{folder}/{uuid.uuid4()}-m0.avro")
    with DeletesWriter(table.spec(), table.schema(), output, number, "deflate") as writer:
        for file in files:
            writer.add(ManifestEntry.from_args(3, status=ManifestEntryStatus.ADDED, data_file=file))
    manifests = [writer.to_manifest_file(), *(parent.manifests(table.io) if parent else [])]
    sequence_number = metadata.next_sequence_number()
    place = f"{folder}/snap-{number}.avro"
    parent_id = parent.snapshot_id if parent else None
    with write_manifest_list(2, table.io.new_output(place), number, parent_id, sequence_number, "deflate") as listed:
        listed.add_manifests(manifests)
    snapshot = Snapshot(
        snapshot_id=number,
        parent_snapshot_id=parent_id,
        sequence_number=sequence_number,
        timestamp_ms=int(time.time() * 1000),
        manifest_list=place,
        summary=Summary(Operation.OVERWRITE),
        schema_id=metadata.current_schema_id,
    )
    reference = SetSnapshotRefUpdate(
        ref_name="main", type=SnapshotRefType.BRANCH, snapshot_id=number, parent_snapshot_id=parent_id
    )
    required = AssertRefSnapshotId(ref="main", snapshot_id=parent_id)
    table.catalog.commit_table(table, (required,), (AddSnapshotUpdate(snapshot=snapshot), reference))
    table.refresh()


def as_third_version(table: Any) -> str:
    """Return a metadata file that says that a table is one of the third version."""
    found = json.loads(Path(local(table.refresh().metadata_location)).read_text())
    found |= {"format-version": 3, "next-row-id": 1_000_000}
    for snapshot in found["snapshots"]:
        snapshot |= {"first-row-id": 0, "added-rows": 1}
    path = Path(local(table.location())) / "metadata" / "99999-third.metadata.json"
    path.write_text(json.dumps(found))
    return str(path)


def data_files(table: Any) -> list[str]:
    """Return the paths of the table's data files, in the order in which they were added."""
    entries = [
        (entry.sequence_number, entry.data_file.file_path)
        for manifest in table.refresh().current_snapshot().manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
        if entry.data_file.content == DataFileContent.DATA
    ]
    return [path for _, path in sorted(entries)]
