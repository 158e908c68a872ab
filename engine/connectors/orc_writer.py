"""OrcWriter: batches as an ORC file, in stripes of some megabytes. A full disk is an error as of any other file.

Held by: tests/connectors/test_block_files.py
"""

from __future__ import annotations

import io
import re
from typing import Any, Final

import pyarrow as pa

from engine.errors import ConfigurationError, DataError, SchemaError
from engine.records.arrow_functions import pc
from engine.records.plain_types import plain_schema
from engine.storage.file_systems import file_system_of, size_of

_STRIPE_BYTES: Final = 16 << 20
#: readers have ORC's timestamps in nanoseconds: the years from 1677 to 2262
_NANOSECONDS_MAX: Final = 2**63 - 1
#: decimals of negative scale in the text of a type, nested ones too
_NEGATIVE_SCALE: Final = re.compile(r"decimal\d+\(\d+, -")
_CODECS: Final = {"none": "uncompressed", "snappy": "snappy", "zlib": "zlib", "zstd": "zstd", "lz4": "lz4"}


def check_orc_sink(schema: pa.Schema, compression: str) -> None:
    """Raise SchemaError for a type that ORC does not have, ConfigurationError for an unknown codec."""
    if compression not in _CODECS:
        raise ConfigurationError(f"write_orc: compression={compression!r}: choose one of {', '.join(_CODECS)}")
    for field in schema:
        if _NEGATIVE_SCALE.search(str(field.type)):  # ORC's library ends the process
            raise SchemaError(
                f"write_orc: column {field.name!r} is {field.type}, and ORC has no negative scales; cast it to scale 0"
            )
        try:
            _writer(pa.BufferOutputStream(), compression).write(pa.schema([field]).empty_table())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise SchemaError(
                f"write_orc: column {field.name!r} is {field.type}, which ORC cannot store ({reason}); drop or cast it"
            ) from None


def stored_orc_schema(schema: pa.Schema, compression: str) -> pa.Schema:
    """Return the schema that rows have when they come back from ORC."""
    from pyarrow import orc

    sink = pa.BufferOutputStream()
    writer = _writer(sink, compression)
    writer.write(schema.empty_table())
    writer.close()
    stored: pa.Schema = orc.ORCFile(pa.BufferReader(sink.getvalue())).schema
    return plain_schema(pa.schema([pa.field(field.name, field.type) for field in stored]))


def _writer(where: Any, compression: str) -> Any:
    from pyarrow import orc

    return orc.ORCWriter(where, compression=_CODECS[compression], stripe_size=_STRIPE_BYTES)


def _times_of(schema: pa.Schema) -> dict[str, int]:
    """Return the widest span of nanoseconds from 1970 on, in units of each column of timestamps."""
    units = {"s": 10**9, "ms": 10**6, "us": 10**3}
    return {
        field.name: _NANOSECONDS_MAX // units[field.type.unit]
        for field in schema
        if pa.types.is_timestamp(field.type) and field.type.unit in units
    }


class _Sink(io.RawIOBase):
    """The stream that ORC writes to. It never fails, since the library would end the process; the writer checks."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = file_system_of(str(path)).create(str(path))
        self._error: OSError | None = None

    def writable(self) -> bool:
        """Return whether it can be written."""
        return True

    def write(self, data: Any, /) -> int:
        """Append bytes, unless that has failed before."""
        view = memoryview(data).cast("B")
        try:
            done = 0
            while self._error is None and done < len(view):
                done += self._file.write(view[done:]) or 0
        except OSError as error:
            self._error = error
        return len(view)

    def check(self) -> None:
        """Raise what the operating system has refused so far."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def abort(self) -> None:
        """Close and remove the file."""
        self._file.abort()
        super().close()


class OrcWriter:
    """Writes one ORC file."""

    is_full = False

    def __init__(self, schema: pa.Schema, path: str, compression: str) -> None:
        self._path = path
        self._file = _Sink(path)
        self._writer = _writer(pa.PythonFile(self._file, "w"), compression)
        self._row_count = 0
        self._times = _times_of(schema)
        # A file without rows has the schema, too.
        self._write(schema.empty_table())

    def _write(self, table: pa.Table) -> None:
        self._writer.write(table)
        self._file.check()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows. Raises: DataError for a time that readers of ORC do not have."""
        for name, most in self._times.items():
            self._check_times(batch.column(name), name, most)
        self._write(pa.Table.from_batches([batch]))
        self._row_count += batch.num_rows

    def _check_times(self, times: pa.Array, name: str, most: int) -> None:
        bounds = pc.min_max(times)
        for bound in (bounds["min"], bounds["max"]):
            if bound.is_valid and not -most <= bound.value <= most:
                text = pc.cast(bound, pa.string()).as_py()
                raise DataError(
                    f"write_orc: column {name!r}: {text} is beyond the years 1677 to 2262, which ORC is read with; cast"
                    " the column to pa.string(), or write Parquet"
                )

    def finish(self) -> tuple[int, int, str]:
        """Write the footer; return (rows, bytes, "")."""
        self._writer.close()
        self._file.check()
        self._file.close()
        return self._row_count, size_of(str(self._path)), ""

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        if not self._file.closed:
            self._writer.close()
            self._file.abort()
