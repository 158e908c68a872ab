"""JsonWriter: batches as JSON lines, one object a row, made column by column by Arrow's functions.

    id   name          {"id":1,"name":"Ada"}
    1    Ada     ──►   {"id":2,"name":null}
    2    null

``engine.expressions.json_of_values`` says what the text of a value is.

Held by: tests/connectors/test_json.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.connectors.line_writer import LineWriter
from engine.errors import DataError, SchemaError
from engine.expressions.json_of_values import objects, texts_of


def check_json_sink(schema: pa.Schema) -> None:
    """Raise SchemaError for a column that has no form in JSON."""
    for field in schema:
        try:
            if isinstance(field.type, pa.UuidType):
                raise SchemaError("bytes that are no text")
            texts_of(pa.nulls(0, field.type))
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, SchemaError):
            raise SchemaError(
                f"write_json: column {field.name!r} is {field.type}, which has no form in JSON; drop or cast it"
            ) from None


class JsonWriter(LineWriter):
    """Writes one file of JSON lines."""

    def __init__(self, schema: pa.Schema, path: str, compression: str = "") -> None:
        check_json_sink(schema)
        super().__init__(path, compression)

    def _lines(self, batch: pa.RecordBatch) -> pa.Array:
        try:
            return objects(batch.schema.names, batch.columns, batch.num_rows, "\n")
        except pa.ArrowInvalid as error:
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                try:
                    texts_of(column)
                except pa.ArrowInvalid:
                    raise DataError(f"write_json: column {name!r} has bytes that are not UTF-8; encode it") from error
            raise
