"""TextWriter: one string column as lines of UTF-8, each with a line feed behind it.

As in Spark, a null is an empty line, and a value that holds a line end is written as it is: it reads back as several
lines. A file whose first value begins with U+FEFF gets it twice, since readers pass over the first one.

Held by: tests/connectors/test_text.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.connectors.line_writer import LineWriter
from engine.errors import SchemaError
from engine.files.line_blocks import BYTE_ORDER_MARK
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

_MARK = BYTE_ORDER_MARK.decode()
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


class TextWriter(LineWriter):
    """Writes one text file."""

    def __init__(self, schema: pa.Schema, path: str, compression: str = "") -> None:
        check_text_sink(schema)
        super().__init__(path, compression)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a line for each row."""
        if self._row_count == 0 and batch.num_rows:
            first = batch.column(0)[0].as_py()
            if first is not None and first.startswith(_MARK):
                self._file.write(memoryview(BYTE_ORDER_MARK))
        super().write(batch)

    def _lines(self, batch: pa.RecordBatch) -> pa.Array:
        # The separator goes between the value and nothing, which is behind it.
        values = pc.cast(batch.column(0), pa.string())
        return pc.binary_join_element_wise(values, _NOTHING, _LINE_END, null_handling="replace", null_replacement="")
