"""Files of deletes that a commit writes: deletion vectors in one Puffin file, or position deletes, a file each.

    delete_files(folder, stem, deletes, version) -> entries of manifests

    deletes         a data file and all of its deleted places, also those that other files of deletes have had
    version 3       deletion vectors, the blobs of one file
    version 2       files of position deletes, one for each data file, which its bounds name

A file that says all of one data file's deletes takes the place of those before it, so there is no more than one.

    PFA1 │ blob │ blob … │ PFA1 │ JSON: type, fields, places of blobs │ its length, flags: 4 little │ PFA1

Source: Puffin's specification, "deletion-vector-v1"; Iceberg's, "Position Delete Files".
Held by: tests/iceberg_tables/test_merge.py
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from engine.iceberg_tables.arrow_types import FIELD_ID
from engine.iceberg_tables.manifests import data_file_of
from engine.iceberg_tables.planned_files import PATH_ID, PlannedFile, data_path
from engine.iceberg_tables.row_deletes import VECTOR_MAGIC, deleted_positions
from engine.storage.file_systems import file_system_of

_PUFFIN: Final = b"PFA1"
_POSITION_ID: Final = 2147483545
_SCHEMA: Final = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={FIELD_ID: str(PATH_ID).encode()}),
        pa.field("pos", pa.int64(), nullable=False, metadata={FIELD_ID: str(_POSITION_ID).encode()}),
    ]
)


class FileDeletes(NamedTuple):
    """The deleted rows of a data file."""

    file: PlannedFile
    places: BitMap64


def with_former(file: PlannedFile, places: BitMap64) -> FileDeletes:
    """Return the deletes of a data file, with those that it has."""
    known = file.known_deletes()
    return FileDeletes(file, places | bitmap(deleted_positions(file.file.file_path, known)) if known else places)


def bitmap(positions: pa.Array) -> BitMap64:
    """Return the bitmap of numbers."""
    from array import array

    numbers = positions.cast(pa.uint64())
    begin = 8 * numbers.offset
    content = memoryview(numbers.buffers()[1])[begin : begin + 8 * len(numbers)]
    return BitMap64(array("Q", content.tobytes()))


def delete_files(folder: str, stem: str, deletes: Sequence[FileDeletes], version: int) -> list[Any]:
    """Write the files of deletes into a folder, and return them as manifests have them."""
    if not deletes:
        return []
    if version > 2:
        return _vectors(f"{folder}/{stem}.puffin", deletes)
    return [_positions(f"{folder}/{stem}-{number:05d}.parquet", each) for number, each in enumerate(deletes)]


def _numbers(places: BitMap64) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places.to_array())])


def _positions(location: str, deletes: FileDeletes) -> Any:
    path, count = deletes.file.file.file_path, len(deletes.places)
    columns = [pa.repeat(pa.scalar(path), count), _numbers(deletes.places)]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA), buffer, compression="zstd")
    content = buffer.getvalue()
    _write(location, content)
    return _entry(location, "PARQUET", deletes, len(content), {})


def _entry(location: str, kind: str, deletes: FileDeletes, size: int, more: dict[str, Any]) -> Any:
    from pyiceberg.manifest import DataFileContent, FileFormat

    file = deletes.file.file
    path = file.file_path.encode()
    return data_file_of(
        file.spec_id,
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat(kind),
        partition=file.partition,
        record_count=len(deletes.places),
        file_size_in_bytes=size,
        lower_bounds={PATH_ID: path},
        upper_bounds={PATH_ID: path},
        referenced_data_file=file.file_path,
        **more,
    )


def _vectors(location: str, deletes: Sequence[FileDeletes]) -> list[Any]:
    blobs = [_blob(each.places) for each in deletes]
    places, begin = [], len(_PUFFIN)
    for blob in blobs:
        places.append(begin)
        begin += len(blob)
    described = [
        {
            "type": "deletion-vector-v1",
            # the snapshot and its number are not known when the file is written: -1 is what the format has for it
            "snapshot-id": -1,
            "sequence-number": -1,
            "fields": [],
            "offset": place,
            "length": len(blob),
            "properties": {"referenced-data-file": each.file.file.file_path, "cardinality": str(len(each.places))},
        }
        for place, blob, each in zip(places, blobs, deletes, strict=True)
    ]
    payload = json.dumps({"blobs": described, "properties": {"created-by": "Drey"}}).encode()
    footer = _PUFFIN + payload + struct.pack("<ii", len(payload), 0) + _PUFFIN
    content = b"".join((_PUFFIN, *blobs, footer))
    _write(location, content)
    return [
        _entry(
            location,
            "PUFFIN",
            each,
            len(content),
            {"content_offset": place, "content_size_in_bytes": len(blob)},
        )
        for place, blob, each in zip(places, blobs, deletes, strict=True)
    ]


def _blob(places: BitMap64) -> bytes:
    """Return a deletion vector: the portable form of 64 bits of Roaring bitmaps, between magic and checksum."""
    inner = VECTOR_MAGIC + places.serialize()
    return struct.pack(">I", len(inner)) + inner + struct.pack(">I", zlib.crc32(inner))


def _write(location: str, content: bytes) -> None:
    path = data_path(location)
    file_system_of(path).replace(path, content)
