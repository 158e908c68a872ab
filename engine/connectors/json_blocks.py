"""Blocks of JSON lines to columns, natively or by Arrow's parser, and where a line is that it does not take.

    JsonParser(schema).parse(block) -> pa.Table             pa.ArrowInvalid: some line is malformed
    JsonParser(schema).parse_good(block, before, behind) -> (tables, count of malformed lines)
    JsonParser(schema).first_bad(block) -> (line, reason)   halves the block until one line is left
    JsonParser(schema, ...).new_members() -> paths          members that the schema does not name, each once
    inferred_table(block) -> pa.Table                       names and types by what is there

Members that the schema does not name are passed over; one that is missing is null. Days, times and the like, wherever
they are, are read as texts or numbers and cast (``json_types``): a text with an offset from UTC is no timestamp
without a zone, as in CSV. Where a text is wanted, there is the JSON text of numbers, objects and other values that are
none; where a map is, the members of an object. Ordinary blocks are read by ``json_columns``, with what Arrow would say
of them. One that Arrow refuses, as it does one with objects for maps, is looked at line by line (``json_lines``).

Held by: tests/connectors/test_json.py
"""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.json as pajson

from engine.connectors.json_columns import JsonColumns, parses_natively
from engine.connectors.json_lines import (
    SPAN_BYTES,
    LineReader,
    depth_of,
    goes_over,
    is_one_a_line,
    is_one_value,
    objects_over_lines,
)
from engine.connectors.json_types import readable, values_of

_ONE: Final = "JSON lines has one object a line: jq -c . FILE > NEW"
OVER_LINES: Final = f"the object is not whole on its line; {_ONE}"
SEVERAL: Final = f"more than one object on a line; {_ONE}"

#: lists and objects within each other of which types are inferred
DEPTH_MAX: Final = 2048
_NOTHING: Final = pa.schema([])
_NULL_LINE: Final = re.compile(rb"^[ \t\r]*null", re.MULTILINE)


#: fault of bytes in another encoding, and what to do
NOT_UTF8: Final = "there are bytes that are not UTF-8; iconv -f cp1252 -t UTF-8 FILE > NEW converts the file"


def is_utf8(block: bytes) -> None:
    """Raise pa.ArrowInvalid for bytes that are not UTF-8, for which Arrow's JSON does not look."""
    offsets = pa.py_buffer(struct.pack("=ii", 0, len(block)))
    try:
        pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(block)]).validate(full=True)
    except pa.ArrowInvalid:
        raise pa.ArrowInvalid(NOT_UTF8) from None


def inferred_table(block: bytes) -> pa.Table:
    """Return whole lines as a table of the types that Arrow infers; pa.ArrowInvalid: malformed, or mixed types."""
    # Deeper ones end the process: Arrow calls itself for each level.
    if JsonColumns(_NOTHING, _NOTHING).parse(block) is None and max(map(depth_of, block.split(b"\n"))) > DEPTH_MAX:
        raise pa.ArrowInvalid(f"lists and objects lie within each other more than {DEPTH_MAX} deep")
    table = _read(block, pajson.ParseOptions(newlines_in_values=False))
    if not is_one_a_line(block, table.num_rows):
        lines = enumerate(block.split(b"\n"), 1)
        number, line = next(((number, line) for number, line in lines if not is_one_value(line)), (1, b""))
        raise pa.ArrowInvalid(f"line {number}: {OVER_LINES if goes_over(line) else SEVERAL}")
    return table


def member_paths(schema: Iterable[pa.Field], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all members of columns; elements of lists and values of maps have no part of their own."""
    for field in schema:
        path = (*before, field.name)
        yield path
        yield from _paths_within(field.type, path)


def _paths_within(data_type: pa.DataType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if pa.types.is_struct(data_type):
        yield from member_paths(data_type, path)
    elif pa.types.is_map(data_type):
        yield from _paths_within(data_type.item_type, path)
    elif pa.types.is_nested(data_type):
        yield from _paths_within(data_type.value_type, path)


def _has_decimals(data_type: pa.DataType) -> bool:
    """Return whether values of a type are decimals, or have some within."""
    inner = (data_type.field(index).type for index in range(data_type.num_fields))
    return bool(pa.types.is_decimal(data_type)) or any(map(_has_decimals, inner))


def _read(block: bytes, options: pajson.ParseOptions) -> pa.Table:
    # Arrow takes such a line for an object without members, and a block of nothing else ends the process.
    if _NULL_LINE.search(block):
        raise pa.ArrowInvalid("null is no object")
    read_options = pajson.ReadOptions(use_threads=False, block_size=len(block) + 1)
    return pajson.read_json(pa.BufferReader(block), read_options, options)


class JsonParser:
    """Parses blocks of whole lines into the columns of a schema; ``tells``: says which other members there are."""

    def __init__(self, schema: pa.Schema, *, tells: bool = False) -> None:
        self._schema = schema
        self._tells = tells
        #: members that Arrow's parser has met, and those of them that were not told yet
        self._told: set[tuple[str, ...]] = set()
        self._untold: list[tuple[str, ...]] = []
        self._lines = LineReader(schema)
        # Without columns there are rows all the same, and Arrow counts them by one that is nowhere.
        self._read_as = pa.schema([pa.field(field.name, readable(field.type)) for field in schema])
        is_native = all(parses_natively(field.type) for field in self._read_as)
        self._native = JsonColumns(schema, self._read_as) if is_native else None
        self._exact = [field.name for field in self._read_as if _has_decimals(field.type)]
        asked = self._read_as if len(schema) else pa.schema([("", pa.null())])
        self._options, self._all = (
            pajson.ParseOptions(explicit_schema=asked, newlines_in_values=False, unexpected_field_behavior=behavior)
            for behavior in ("ignore", "infer")
        )

    def parse(self, block: bytes) -> pa.Table:
        """Return the rows of whole lines; pa.ArrowInvalid when one is malformed."""
        try:
            return self._parse(block)
        except pa.ArrowInvalid:
            if not self._lines.rewrites:
                raise
            lines = block.split(b"\n")
            texts = [self._lines.rewritten(line) for line in lines]
            if texts == lines:
                raise
            return self._parse(b"\n".join(texts))

    def _parse(self, block: bytes) -> pa.Table:
        if not block or block.isspace():
            return self._schema.empty_table()
        is_utf8(block)
        table = None if self._native is None else self._native.parse(block)
        if table is None:
            table = _read(block, self._options)
            self._look(block)
            if not is_one_a_line(block, table.num_rows):
                raise pa.ArrowInvalid(SEVERAL)
            for name in self._exact:  # Arrow's reader counts digits before it adds zeros up to the scale
                table.column(name).validate(full=True)
        if table.schema.names != self._schema.names:
            table = table.select(self._schema.names)
        if table.schema == self._schema:
            return table
        columns = [values_of(column, field.type) for column, field in zip(table.columns, self._schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _look(self, block: bytes) -> None:
        """Find out which members a block has that Arrow's parser has read."""
        if self._tells:
            with contextlib.suppress(pa.ArrowInvalid):
                found = [path for path in member_paths(_read(block, self._all).schema) if path not in self._told]
                self._told.update(found)
                self._untold += found

    def new_members(self) -> list[tuple[str, ...]]:
        """Return the paths of members that were met since the last call, and are not in the schema."""
        found, self._untold = self._untold, []
        known = set(member_paths(self._read_as))
        return [
            *([] if self._native is None else self._native.new_members()),
            *(path for path in found if path not in known),
        ]

    def parses(self, block: bytes) -> bool:
        """Return whether no line is malformed."""
        try:
            self._parse(block)
        except pa.ArrowInvalid:
            return False
        return True

    def parse_good(self, block: bytes, before: bytes = b"", behind: bytes = b"") -> tuple[list[pa.Table], int]:
        """Return the rows of the lines that are good, and how many bad ones there are.

        An object that goes over lines is one bad row, of the block in which it begins; its lines are no rows.

        Args:
            block: whole lines.
            before: lines before the block, so many that none of its lines is of an object that begins before them.
            behind: lines behind it, likewise.
        """
        # A block that lies within an object is shorter than that.
        if len(block) >= SPAN_BYTES or not before or self.parses(before):
            with contextlib.suppress(pa.ArrowInvalid):
                return [self._parse(block)], 0
        lines = block.split(b"\n")
        around = [each.removesuffix(b"\n").split(b"\n") if each else [] for each in (before, behind)]
        ended = lines[:-1] if lines[-1] == b"" else lines
        bad = 0
        offset = len(around[0])
        for first, last in objects_over_lines([*around[0], *ended, *around[1]]):
            bad += 0 <= first - offset < len(ended)
            for number in range(max(0, first - offset), min(last - offset + 1, len(ended))):
                lines[number] = b""
        good = [self._lines.read(line) for line in lines]
        tables, refused = self._good_ones([line for line in good if line is not None])
        return tables, bad + good.count(None) + refused

    def _good_ones(self, lines: Sequence[bytes]) -> tuple[list[pa.Table], int]:
        """Return the rows of the lines that parse, and how many do not: those are looked for by halving."""
        with contextlib.suppress(pa.ArrowInvalid):
            return [self._parse(b"\n".join(lines))], 0
        if len(lines) == 1:
            return [], 1
        middle = len(lines) // 2
        first, bad_in_first = self._good_ones(lines[:middle])
        second, bad_in_second = self._good_ones(lines[middle:])
        return first + second, bad_in_first + bad_in_second

    def first_bad(self, block: bytes) -> tuple[int, str]:
        """Return the first malformed line of a block, from 0, and its fault."""
        raw = block.split(b"\n")
        lines = [self._lines.rewritten(line) for line in raw] if self._lines.rewrites else raw
        first, last = 0, len(lines)
        while last - first > 1:
            middle = (first + last) // 2
            if self.parses(b"\n".join(lines[first:middle])):
                first = middle
            else:
                last = middle
        if goes_over(raw[first]):
            return first, OVER_LINES
        if fault := self._lines.fault(raw[first]):
            return first, fault
        try:
            self._parse(lines[first])
        except pa.ArrowInvalid as error:
            reason = (
                str(error).partition("\n")[0].removeprefix("JSON parse error: ").partition(" If these timestamps")[0]
            )
            return first, reason.removesuffix(" in row 0").rstrip(".") + _offset_advice(reason)
        return first, "malformed"


#: end of a text that has an offset from UTC, in a message of Arrow's
_WITH_OFFSET: Final = re.compile(r"\d(Z|[+-]\d\d(:?\d\d)?)' as a scalar")


def _offset_advice(reason: str) -> str:
    """Return the advice about a timestamp that is malformed because of its offset from UTC; "" for other faults."""
    if "expected no zone offset" in reason:
        return "; it has an offset from UTC, which a type such as timestamp[us, tz=UTC] takes"
    if "expected a zone offset" in reason and _WITH_OFFSET.search(reason):
        return "; it is not written like 2024-02-29T12:30:00Z: read it as string, and .str.to_timestamp(format) goes on"
    if "expected a zone offset" in reason:
        return "; it has no offset from UTC: a type such as timestamp[us] takes it, and .dt.with_timezone(zone) goes on"
    return ""
