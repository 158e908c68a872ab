"""Files of position deletes that a commit writes, one for each data file.

    delete_files(folder, stem, deletes, as_vectors=False) -> entries of manifests

    as_vectors whether they are deletion vectors, each in a file of Puffin: tables of the third version have no others
    deletes     a data file and all of its deleted places, also those that other files of deletes have had

A file that says all of one data file's deletes takes the place of those before it, so there is no more than one.

Source: Iceberg's specification, "Position Delete Files"; Puffin's, "deletion-vector-v1".
Held by: tests/iceberg_tables/test_merge.py
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from array import array
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

_POSITION_ID: Final = 2147483545
#: field of rows' places, of which a vector is made
_ROW_POSITION_ID: Final = 2147483645
_PUFFIN: Final = b"PFA1"
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
    numbers = positions.cast(pa.uint64())
    begin = 8 * numbers.offset
    content = memoryview(numbers.buffers()[1])[begin : begin + 8 * len(numbers)]
    return BitMap64(array("Q", content.tobytes()))


def delete_files(folder: str, stem: str, deletes: Sequence[FileDeletes], *, as_vectors: bool = False) -> list[Any]:
    """Write the files of deletes into a folder, and return them as manifests have them."""
    if as_vectors:
        return [_vector(f"{folder}/{stem}-{number:05d}.puffin", each) for number, each in enumerate(deletes)]
    return [_written(f"{folder}/{stem}-{number:05d}.parquet", each) for number, each in enumerate(deletes)]


def _written(location: str, deletes: FileDeletes) -> Any:
    """Write a file of Parquet with places of one data file, and return it."""
    file, count = deletes.file.file, len(deletes.places)
    places = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(deletes.places.to_array())])
    buffer = io.BytesIO()
    columns = [pa.repeat(pa.scalar(file.file_path), count), places]
    pq.write_table(pa.Table.from_arrays(columns, schema=_SCHEMA), buffer, compression="zstd")
    bound = {PATH_ID: file.file_path.encode()}
    return _kept(location, "PARQUET", buffer.getvalue(), deletes, lower_bounds=bound, upper_bounds=bound)


def _vector(location: str, deletes: FileDeletes) -> Any:
    """Write a file of Puffin with one deletion vector, and return it."""
    file, count = deletes.file.file, len(deletes.places)
    # The portable form of 64-bit bitmaps is that of the vector: their number, and each behind the key of its high bits.
    inner = VECTOR_MAGIC + deletes.places.serialize()
    blob = struct.pack(">I", len(inner)) + inner + struct.pack(">I", zlib.crc32(inner))
    told = {
        "type": "deletion-vector-v1",
        "fields": [_ROW_POSITION_ID],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": len(_PUFFIN),
        "length": len(blob),
        "properties": {"referenced-data-file": file.file_path, "cardinality": str(count)},
    }
    footer = json.dumps({"blobs": [told], "properties": {"created-by": "drey"}}).encode()
    content = _PUFFIN + blob + _PUFFIN + footer + struct.pack("<I", len(footer)) + bytes(4) + _PUFFIN
    places = {"content_offset": len(_PUFFIN), "content_size_in_bytes": len(blob)}
    return _kept(location, "PUFFIN", content, deletes, **places)


def _kept(location: str, file_format: str, content: bytes, deletes: FileDeletes, **facts: Any) -> Any:
    """Write the bytes of deletes of a data file, and return their file, with facts that its format has."""
    from pyiceberg.manifest import DataFileContent, FileFormat

    file, path = deletes.file.file, data_path(location)
    file_system_of(path).replace(path, content)
    return data_file_of(
        file.spec_id,
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat[file_format],
        partition=file.partition,
        record_count=len(deletes.places),
        file_size_in_bytes=len(content),
        referenced_data_file=file.file_path,
        **facts,
    )
