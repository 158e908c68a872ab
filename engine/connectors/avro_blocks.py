"""Avro files by fastavro: their schema as Arrow's, and their blocks as batches.

    AvroBlocks(path, columns)    as ``block_files.BlockFile``
    arrow_type(avro_schema)      record: struct, array: list, map: map, enum: string, [null, T]: T

Logical types: dates, times, timestamps (in UTC, local ones without a zone), decimals, UUIDs as strings. A union of
several types other than null has no column here: a SchemaError names it.

Held by: tests/connectors/test_block_files.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from engine.errors import ConfigurationError, EngineError, PlanError, SchemaError
from engine.storage.file_systems import file_system_of

_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}
_DECIMAL128_MAX: Final = 38


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise ConfigurationError(
            "read_avro without the package fastavro; install it: pip install 'drey-engine[avro]'"
        ) from None
    return fastavro


class AvroBlocks:
    """An Avro file."""

    block_count = 0
    row_count: int | None = None

    def __init__(self, path: str, columns: Sequence[str] | None) -> None:
        fastavro = _fastavro()
        self._file = file_system_of(path).open_stream(path, is_buffered=True)
        try:
            self._reader = fastavro.block_reader(self._file)
            written = self._reader.writer_schema
            if not isinstance(written, dict) or written.get("type") != "record":
                raise SchemaError(f"read_avro: {path} holds values of {written!r}, and records are read")
            named: dict[str, Any] = {}
            fields = [(each["name"], each["type"]) for each in written["fields"]]
            self.schema = pa.schema(
                [pa.field(name, arrow_type(kind, f"{path}, column {name!r}", named)) for name, kind in fields]
            )
        except EngineError:
            self._file.close()
            raise
        except (ValueError, EOFError, KeyError, IndexError, TypeError) as error:
            self._file.close()
            raise PlanError(f"read_avro: {path} is not a whole Avro file ({error or type(error).__name__})") from None
        except BaseException:
            self._file.close()
            raise
        wanted = [name for name in self.schema.names if columns is None or name in columns]
        self._schema = pa.schema([self.schema.field(name) for name in wanted or self.schema.names[:1]])
        self._texts = [name for name, kind in fields if name in self._schema.names and _holds_uuid(kind)]

    def batches(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all blocks."""
        for block in self._reader:
            rows = list(block)
            for name in self._texts:
                for row in rows:
                    row[name] = None if row[name] is None else str(row[name])
            yield pa.RecordBatch.from_pylist(rows, schema=self._schema)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _holds_uuid(kind: Any) -> bool:
    if isinstance(kind, list):
        return any(map(_holds_uuid, kind))
    return isinstance(kind, dict) and kind.get("logicalType") == "uuid"


def arrow_type(kind: Any, place: str, named: dict[str, Any]) -> pa.DataType:
    """Return the Arrow type of an Avro one; SchemaError names the place of one that has none.

    named: records, enums and fixed ones by name, of which others may be.
    """
    if isinstance(kind, list):
        others = [each for each in kind if each != "null"]
        if len(others) == 1:
            return arrow_type(others[0], place, named)
        raise SchemaError(f"read_avro: {place}: a union of {len(others)} types has no column; write one type")
    if isinstance(kind, str):
        if kind in _PLAIN:
            return _PLAIN[kind]
        if kind in named:
            return named[kind]
        raise SchemaError(f"read_avro: {place}: type {kind!r} is unknown, or holds itself")
    logical = kind.get("logicalType")
    if logical == "decimal":
        make = pa.decimal128 if kind["precision"] <= _DECIMAL128_MAX else pa.decimal256
        return make(kind["precision"], kind.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    found = _composed(kind, place, named)
    if "name" in kind:
        named[kind["name"]] = found
    return found


def _composed(kind: dict[str, Any], place: str, named: dict[str, Any]) -> pa.DataType:
    inner: Callable[[Any], pa.DataType] = lambda each: arrow_type(each, place, named)  # noqa: E731
    match kind["type"]:
        case "record":
            return pa.struct([pa.field(each["name"], inner(each["type"])) for each in kind["fields"]])
        case "array":
            return pa.list_(inner(kind["items"]))
        case "map":
            return pa.map_(pa.string(), inner(kind["values"]))
        case "enum":
            return pa.string()
        case "fixed":
            return pa.binary(kind["size"])
        case other:
            return inner(other)
