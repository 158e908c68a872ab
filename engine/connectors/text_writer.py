"""TextWriter: one string column as lines of UTF-8, each with a line feed behind it.

As in Spark, a null is an empty line, and a value that holds a line end is written as it is: it reads back as several
lines.

Held by: tests/connectors/test_text.py
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from engine.errors import SchemaError
from engine.files.output_file import OutputFile
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_NOTHING, _LINE_END = scalar_of(""), scalar_of("\n")


def check_text_sink(schema: pa.Schema) -> None:
    """Raise SchemaError unless there is exactly one column, of strings."""
    if len(schema) != 1:
        raise SchemaError(
            f"write_text: one string column is written, there are {len(schema)}: {', '.join(schema.names)}; "
            "select one, made with .str.concat() of several"
        )
    if not (pa.types.is_string(schema.field(0).type) or pa.types.is_large_string(schema.field(0).type)):
        raise SchemaError(f"write_text: column {schema.names[0]!r} is {schema.field(0).type}, not string; cast it")


class TextWriter:
    """Writes one text file."""

    is_full = False

    def __init__(self, schema: pa.Schema, path: Path, compression: str = "") -> None:
        check_text_sink(schema)
        self._row_count = 0
        self._file = OutputFile(path, compression)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a line for each row."""
        if batch.num_rows == 0:
            return
        # The separator goes between the value and nothing, which is behind it.
        values = batch.column(0).cast(pa.string())
        lines = pc.binary_join_element_wise(values, _NOTHING, _LINE_END, null_handling="replace", null_replacement="")
        _validity, offsets, data = lines.buffers()
        bounds = memoryview(offsets).cast("i")
        self._file.write(memoryview(data)[bounds[lines.offset] : bounds[lines.offset + len(lines)]])
        self._row_count += batch.num_rows

    def finish(self) -> tuple[int, int, str]:
        """Close the file; return (rows, bytes, "")."""
        self._file.close()
        return self._row_count, self._file.size_bytes, ""

    def abort(self) -> None:
        """Close and remove the file, unless it is finished."""
        self._file.abort()
