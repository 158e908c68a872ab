"""Blocks of JSON lines to columns, by Arrow's parser, and where a line is that it does not take.

    JsonParser(schema).parse(block) -> pa.Table             pa.ArrowInvalid: some line is malformed
    JsonParser(schema).parse_good(block) -> (tables, count of malformed lines)
    JsonParser(schema).first_bad(block) -> (line, reason)   halves the block until one line is left
    inferred_table(block) -> pa.Table                       names and types by what is there

Members that the schema does not name are passed over; one that is missing is null. Days, times of day and the like,
which Arrow's JSON does not have, are read as texts or numbers and cast.

Held by: tests/connectors/test_json.py
"""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.json as pajson

from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of


def is_utf8(block: bytes) -> None:
    """Raise pa.ArrowInvalid for bytes that are not UTF-8, for which Arrow's JSON does not look."""
    offsets = pa.py_buffer(struct.pack("=ii", 0, len(block)))
    pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(block)]).validate(full=True)


def inferred_table(block: bytes) -> pa.Table:
    """Return whole lines as a table of the types that Arrow infers."""
    return _read(block, pajson.ParseOptions(newlines_in_values=False))


def _read(block: bytes, options: pajson.ParseOptions) -> pa.Table:
    read_options = pajson.ReadOptions(use_threads=False, block_size=len(block) + 1)
    return pajson.read_json(pa.BufferReader(block), read_options, options)


class JsonParser:
    """Parses blocks of whole lines into the columns of a schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        # Without columns there are rows all the same, and Arrow counts them by one that is nowhere.
        self._read_as = pa.schema([pa.field(field.name, _readable(field.type)) for field in schema])
        asked = self._read_as if len(schema) else pa.schema([("", pa.null())])
        self._options = pajson.ParseOptions(
            explicit_schema=asked, newlines_in_values=False, unexpected_field_behavior="ignore"
        )

    def parse(self, block: bytes) -> pa.Table:
        """Return the rows of whole lines; pa.ArrowInvalid when one is malformed."""
        if not block.strip():
            return self._schema.empty_table()
        is_utf8(block)
        table = _read(block, self._options)
        if table.schema.names != self._schema.names:
            table = table.select(self._schema.names)
        if table.schema == self._schema:
            return table
        columns = [_as(column, field.type) for column, field in zip(table.columns, self._schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def parse_good(self, block: bytes) -> tuple[list[pa.Table], int]:
        """Return the rows of the lines that parse, and how many do not: those are looked for by halving the block."""
        try:
            return [self.parse(block)], 0
        except pa.ArrowInvalid:
            pass
        middle = block.find(b"\n", len(block) // 2, len(block) - 1) + 1 or block.rfind(b"\n", 0, len(block) // 2) + 1
        if not middle:
            return [], 1
        first, bad_in_first = self.parse_good(block[:middle])
        second, bad_in_second = self.parse_good(block[middle:])
        return first + second, bad_in_first + bad_in_second

    def first_bad(self, block: bytes) -> tuple[int, str]:
        """Return which line of a block that does not parse is the first one at fault, from 0, and what is wrong."""
        lines = block.split(b"\n")
        first, last = 0, len(lines)
        while last - first > 1:
            middle = (first + last) // 2
            try:
                self.parse(b"\n".join(lines[first:middle]))
                first = middle
            except pa.ArrowInvalid:
                last = middle
        try:
            self.parse(lines[first])
        except pa.ArrowInvalid as error:
            reason = str(error).partition("\n")[0].removeprefix("JSON parse error: ")
            return first, reason.removesuffix(" in row 0").rstrip(".")
        return first, "malformed"


def _as(column: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
    """Return a column as the type it becomes; a time of day is that of a moment, which Arrow reads."""
    if pa.types.is_time(data_type):
        moments = pc.binary_join_element_wise(scalar_of("1970-01-01"), column, scalar_of(" "))
        return moments.cast(pa.timestamp(data_type.unit)).cast(data_type)
    return column if column.type == data_type else column.cast(data_type)


def _readable(data_type: pa.DataType) -> pa.DataType:
    """Return the type as which Arrow's JSON reads what becomes another one."""
    types = pa.types
    if types.is_date(data_type) or types.is_time(data_type):
        return pa.string()
    if types.is_duration(data_type):
        return pa.int64()
    if types.is_fixed_size_binary(data_type):
        return pa.binary()
    if types.is_list(data_type) or types.is_large_list(data_type) or types.is_fixed_size_list(data_type):
        return pa.list_(_readable(data_type.value_type))
    if types.is_struct(data_type):
        return pa.struct([pa.field(each.name, _readable(each.type)) for each in data_type])
    return data_type
