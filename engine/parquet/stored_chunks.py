"""Stored chunks: columns of a Parquet file that are decoded here, and the conversion of their values to Arrow.

    stored_values(footer.schema.column(leaf), type) -> Stored | None              None: it is left to pyarrow
    stored_chunk(footer, group, leaf, stored, pages) -> StoredChunk | None        None: it is left to pyarrow

    physical type            logical type                      as Arrow has it
    BOOLEAN                                                    bool
    INT32, INT64             integer, date, time, timestamp    the same bytes, or narrower ones
                             decimal                           128 bits, or 64 (``narrow_decimals``)
    FLOAT, DOUBLE                                              the same bytes
    BYTE_ARRAY               text or none                      texts, or numbers of a dictionary of them
    FIXED_LEN_BYTE_ARRAY     decimal; none                     128 bits; the same bytes

A column is decoded here where its encodings are plain, dictionary, runs, and differences of integers, as nearly all
writers have them, and its pages are no larger than a few megabytes. Pages of differences may have any size, since
pyarrow does not read those of each writer. What pyarrow alone knows is not told apart further: nested columns,
differences of texts, 96-bit times, types whose meaning stands in Arrow's own metadata.

Source: parquet-format, "Logical Types", "Encodings".
Held by: tests/parquet/test_group_reader.py
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from engine.parquet.group_reader import StoredChunk, known_codecs
from engine.parquet.pages import BUFFER_MAX, FORGOTTEN_BYTES, Pages, first_page

#: chunk_pages.Shape
_COPIED, _CONVERTED, _REVERSED, _BITS, _TEXTS, _CODES = range(6)
_ENCODINGS: Final = frozenset({"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"})
#: integers may be differences, too
_DIFFERENCES: Final = "DELTA_BINARY_PACKED"
_OF_INTEGERS: Final = _ENCODINGS | {_DIFFERENCES}
_INTEGERS: Final = ("INT32", "INT64")
_CODECS: Final = known_codecs()
#: limit of bytes held while a column is read: pages of a few megabytes, a dictionary
_HELD_BYTES_MAX: Final = 8 << 20
_TEXTS_BYTES_MAX: Final = 1 << 30
_VALUE_BYTES_MAX: Final = 64
_UNITS: Final = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_TEXT_TYPES: Final = frozenset({pa.string(), pa.binary(), pa.large_string(), pa.large_binary()})


class Stored(NamedTuple):
    """The encoding of a column's values in its pages, their widths there and in Arrow, and whether they may be null."""

    shape: int
    stored_width: int
    width: int
    has_nulls: bool = False


def stored_chunk(footer: pq.FileMetaData, group: int, leaf: int, stored: Stored, pages: Pages) -> StoredChunk | None:
    """Return the chunk of a row group's column; None: it is not decoded here.

    Args:
        footer: of the file.
        group: one of its row groups.
        leaf: of ``pages.flat_leaves``.
        stored: of ``stored_values``.
        pages: what is known of the column's pages.
    """
    metadata = footer.row_group(group)
    rows, chunk = metadata.num_rows, metadata.column(leaf)
    if chunk.num_values != rows or not is_known(chunk):
        return None
    if pages.held_bytes(BUFFER_MAX) > _HELD_BYTES_MAX and not has_differences(chunk):
        return None
    if stored.shape >= _TEXTS and max(pages.whole_bytes, pages.value_bytes * rows) > _TEXTS_BYTES_MAX:
        return None
    begin, compressed = first_page(chunk), chunk.total_compressed_size
    return StoredChunk(
        begin,
        begin + compressed + FORGOTTEN_BYTES,
        rows,
        max(pages.whole_bytes, compressed),
        chunk.compression,
        stored.shape,
        stored.stored_width,
        stored.width,
        stored.has_nulls,
        chunk.physical_type in _INTEGERS,
    )


def has_differences(chunk: pq.ColumnChunkMetaData) -> bool:
    """Return whether integers are stored as differences, which pyarrow does not read from every writer."""
    return _DIFFERENCES in chunk.encodings


def is_known(chunk: pq.ColumnChunkMetaData) -> bool:
    """Return whether codec and encodings of a column are known here."""
    encodings = _OF_INTEGERS if chunk.physical_type in _INTEGERS else _ENCODINGS
    return chunk.compression in _CODECS and encodings.issuperset(chunk.encodings)


def stored_values(column: pq.ColumnSchema, wanted: pa.DataType) -> Stored | None:
    """Return the conversion of a flat column to a type, in any row group; None: not here.

    wanted: the column's plain type, or a dictionary of int32 where it comes as numbers of texts.
    """
    if column.max_repetition_level or column.max_definition_level > 1:
        return None
    stored = _stored(column, wanted)
    return None if stored is None else stored._replace(has_nulls=column.max_definition_level == 1)


def _stored(column: pq.ColumnSchema, wanted: pa.DataType) -> Stored | None:
    """Return the conversion of values to those of a type; None: not here."""
    logical = json.loads(column.logical_type.to_json())
    physical: str = column.physical_type
    if physical == "BYTE_ARRAY":
        return _stored_texts(logical["Type"], wanted)
    if physical == "FIXED_LEN_BYTE_ARRAY":
        return _stored_bytes(logical, column.length, wanted)
    if physical == "BOOLEAN":
        return Stored(_BITS, 1, 1) if pa.types.is_boolean(wanted) else None
    if physical in ("FLOAT", "DOUBLE"):
        width = 4 if physical == "FLOAT" else 8
        return Stored(_COPIED, width, width) if wanted == (pa.float32() if width == 4 else pa.float64()) else None
    if physical not in _INTEGERS:
        return None
    width = 4 if physical == "INT32" else 8
    if not _is_integer_like(logical, width, wanted):
        return None
    own = wanted.bit_width // 8
    return Stored(_COPIED if own == width else _CONVERTED, width, own)


def _stored_texts(logical: str, wanted: pa.DataType) -> Stored | None:
    if logical not in ("None", "String", "JSON", "Enum", "BSON"):
        return None
    if pa.types.is_dictionary(wanted):
        is_coded = wanted.index_type == pa.int32() and wanted.value_type in _TEXT_TYPES
        return Stored(_CODES, 0, 4) if is_coded else None
    return Stored(_TEXTS, 0, 0) if wanted in _TEXT_TYPES else None


def _stored_bytes(logical: dict[str, Any], length: int, wanted: pa.DataType) -> Stored | None:
    if logical["Type"] == "Decimal" and length <= 16:
        return Stored(_REVERSED, length, 16) if _is_decimal(logical, wanted) and wanted.bit_width == 128 else None
    if logical["Type"] in ("None", "UUID") and 0 < length <= _VALUE_BYTES_MAX and wanted == pa.binary(length):
        return Stored(_COPIED, length, length)
    return None


def _is_integer_like(logical: dict[str, Any], width: int, wanted: pa.DataType) -> bool:
    """Whether integers of a meaning are values of an Arrow type as they are, or widened or cut."""
    kind = logical["Type"]
    if kind == "None":
        return bool(wanted == (pa.int32() if width == 4 else pa.int64()))
    if kind == "Int":
        name = f"{'' if logical['isSigned'] else 'u'}int{logical['bitWidth']}"
        return str(wanted) == name and wanted.bit_width <= 8 * width
    if kind == "Date":
        return bool(width == 4 and wanted == pa.date32())
    if kind == "Decimal":
        return _is_decimal(logical, wanted)
    unit = _UNITS.get(logical.get("timeUnit", ""))
    if kind == "Timestamp" and width == 8:
        return bool(pa.types.is_timestamp(wanted) and wanted.unit == unit)
    if kind == "Time" and (width == 4) == (unit == "ms"):
        return bool(wanted == (pa.time32("ms") if width == 4 else pa.time64(unit)))
    return False


def _is_decimal(logical: dict[str, Any], wanted: pa.DataType) -> bool:
    digits = logical["precision"], logical["scale"]
    return bool(
        (pa.types.is_decimal128(wanted) or pa.types.is_decimal64(wanted)) and (wanted.precision, wanted.scale) == digits
    )
