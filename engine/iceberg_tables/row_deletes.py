"""Rows of a data file that are deleted by their positions: position delete files, and deletion vectors.

    positions = deleted_positions(file_uri, deletes) -> sorted pa.Array of int64
    kept_rows(positions, first, count)               -> mask of the rows first … first + count, None where all are kept

Deletion vector, a blob of a Puffin file:

    length │ D1 D3 39 64 │ number of bitmaps │ key, Roaring bitmap │ key, Roaring bitmap … │ CRC-32
    4 big                  8 little            4 little                                      4 big, of magic and bitmaps

Source: Iceberg's specification, "Position Delete Files"; Puffin's, "deletion-vector-v1".
Held by: tests/iceberg_tables/test_row_deletes.py
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from engine.errors import DataError
from engine.expressions.literals import make_literal
from engine.graph.expression import Call, ColumnRef
from engine.graph.source_spec import SourceSplit
from engine.iceberg_tables.planned_files import data_path
from engine.parquet.footers import read_footer
from engine.parquet.reader import ParquetReader
from engine.parquet.scan_request import file_source
from engine.records.arrow_functions import pc
from engine.storage.file_systems import file_system_of

_PATH: Final = "file_path"
_POSITION: Final = "pos"
VECTOR_MAGIC: Final = b"\xd1\xd3\x39\x64"
_NONE: Final = pa.array([], pa.int64())


def deleted_positions(file_uri: str, deletes: Sequence[Any]) -> pa.Array:
    """Return the positions of a data file's rows that are deleted, sorted.

    deletes: paths of position delete files, or one list of path, offset and size of a deletion vector's blob.
    """
    if deletes and not isinstance(deletes[0], str):
        return _of_vector(*deletes[0])
    found = [batch for path in deletes for batch in _of_file(data_path(path), file_uri)]
    positions = pa.concat_arrays([pc.cast(each, pa.int64()) for each in found]) if found else _NONE
    return pc.take(positions, pc.sort_indices(positions)) if len(found) > 1 else positions


def _of_file(path: str, file_uri: str) -> list[pa.Array]:
    """Return the positions that a position delete file has of a data file; its row groups say which they are of."""
    footer = read_footer(path)
    names = [footer.schema.column(index).path for index in range(len(footer.schema))]
    if _PATH not in names or _POSITION not in names:
        raise DataError(
            f"file {path}: a position delete file has columns file_path and pos; this one has {', '.join(names)}"
        )
    split = SourceSplit(path, 0, footer.num_row_groups, footer.serialized_size)
    predicate = Call("equal", (ColumnRef(_PATH), make_literal(file_uri)))
    reader = ParquetReader(file_source((path,), (split,), (_POSITION,), predicate=predicate), (split,))
    try:
        return [batch.column(0) for batch in reader]
    finally:
        reader.close()


def _of_vector(path: str, offset: int, size: int) -> pa.Array:
    """Return the positions of a deletion vector."""
    from pyroaring import BitMap

    place = data_path(path)
    with file_system_of(place).open_ranges(place) as file:
        blob = file.read_at(offset, size)
    length = int.from_bytes(blob[:4], "big")
    inner, crc = blob[4 : 4 + length], blob[4 + length : 8 + length]
    if len(crc) < 4 or inner[:4] != VECTOR_MAGIC or zlib.crc32(inner) != int.from_bytes(crc, "big"):
        raise DataError(f"file {path}: the deletion vector at byte {offset} is damaged")
    count, rest = int.from_bytes(inner[4:12], "little"), inner[12:]
    found = []
    for _ in range(count):
        key, rest = int.from_bytes(rest[:4], "little"), rest[4:]
        bitmap = BitMap.deserialize(rest)
        rest = rest[len(bitmap.serialize()) :]
        low = pa.Array.from_buffers(pa.uint32(), len(bitmap), [None, pa.py_buffer(bitmap.to_array())])
        found.append(pc.add(pc.cast(low, pa.int64()), pa.scalar(key << 32, pa.int64())))
    return pa.concat_arrays(found) if found else _NONE


def kept_rows(positions: pa.Array, first: int, count: int) -> pa.Array | None:
    """Return the mask of rows that are not deleted, of ``count`` ones from the position ``first``."""
    begin = bisect_left(positions, first, key=_number)
    end = bisect_left(positions, first + count, begin, key=_number)
    if begin == end:
        return None
    return pc.invert(pc.is_in(pa.arange(first, first + count), value_set=positions.slice(begin, end - begin)))


def _number(position: pa.Scalar) -> int:
    number: int = position.as_py()
    return number
