"""Names and types of JSON lines without a schema, from blocks of files.

    inferred_schema([Block(path, lines, is_begin), ...]) -> pa.Schema

Arrow infers a schema of each block; a column has the type that holds those of all blocks, and columns without any
value are texts. Some of Arrow's choices lose what was written, so they are made here, from the texts:

    "2024-01-01"                       timestamp[s]      date32
    "2024-01-01T00:00:00+05:00", "Z"   the clock moves   timestamp[s, tz=UTC]
    "2024-01-01T00:00:00.123"          text              timestamp[us], with more digits [ns]
    with an offset, and without        the clock moves   text, and a warning
    18446744073709551615               double            uint64, or decimal128(38, 0)

as ``read_csv`` has them, within lists and objects as well.

Held by: tests/connectors/test_json.py
Held by: tests/integration/test_json_types.py
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from engine.connectors.json_blocks import NOT_UTF8, OVER_LINES, SEVERAL, JsonParser, inferred_table, is_utf8
from engine.csv.written_dates import has_mixed_offsets, moment_type
from engine.errors import SchemaError
from engine.user_warnings import warn_user

#: pattern of the row number in Arrow's message, from 0
_ARROWS_ROW: Final = re.compile(r" in row ([0-9]+)$")
#: lists and structs within each other
_DEPTH_MAX: Final = 32
_MIXED: Final = "pass schema= with string for that column, which takes numbers, objects and all else as their JSON text"
#: pattern behind a member's name: a fraction, or an integer that a double does not keep
_FRACTION: Final = rb"\s*:\s*-?\d+[.eE]"
_LONG_NUMBER: Final = rb"\s*:\s*-?\d{17,}\s*[,}]"
#: types for integers beyond int64, in the order in which they are tried
_LARGE_TYPES: Final = (pa.uint64(), pa.decimal128(38, 0))


class Block(NamedTuple):
    """Whole lines of a file."""

    path: str
    data: bytes
    #: True for the first rows of the file
    is_begin: bool


def inferred_schema(blocks: Sequence[Block], *, skips: bool = False, keeps_nulls: bool = False) -> pa.Schema:
    """Return the schema that holds all blocks. Raises: SchemaError.

    skips: malformed lines are left out.
    keeps_nulls: columns without any value have the type null.
    """
    path = blocks[0].path
    found = [
        pa.schema([field.with_type(_with_texts_for_moments(field.type)) for field in table.schema])
        for block in blocks
        if block.data.strip() and (table := _inferred(block, skips=skips)) is not None
    ]
    try:
        schema = pa.unify_schemas(found, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        reason = str(error).partition("\n")[0]
        raise SchemaError(f"read_json({path!r}): types differ along the files: {reason}; {_MIXED}") from None
    if not schema.names:
        raise SchemaError(f"read_json({path!r}): its objects have no members; pass schema=")
    deep = [field.name for field in schema if _is_deep(field.type)]
    if deep:
        raise SchemaError(
            f"read_json({path!r}): column {deep[0]!r} is nested more than {_DEPTH_MAX} deep; pass schema= with string"
            " for it, which takes it as its JSON text"
        )
    data = [block.data for block in blocks]
    types = {field.name: _large_type(field, data, path) for field in schema}
    if not keeps_nulls:
        types = {name: _with_texts(each) for name, each in types.items()}
    return _with_moments(pa.schema(list(types.items())), data, path)


def _inferred(block: Block, *, skips: bool) -> pa.Table | None:
    """Return a block as a table of the types that Arrow infers; None where no line of it is left."""
    try:
        is_utf8(block.data)
        return inferred_table(block.data)
    except pa.ArrowInvalid as error:
        lines = [line for line in block.data.split(b"\n") if _is_object(line)] if skips else []
        if lines and len(lines) < block.data.count(b"\n") + 1:
            with contextlib.suppress(pa.ArrowInvalid):
                return inferred_table(b"\n".join(lines) + b"\n")
        if skips and not lines and not block.is_begin:
            return None
        reason = _placed(str(error).partition("\n")[0], block)
        text = f"read_json({block.path!r}): no schema can be inferred: {reason}{_advice(reason)}"
        raise SchemaError(text) from None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _with_texts_for_moments(data_type: pa.DataType) -> pa.DataType:
    """Return the type with texts where Arrow has found timestamps."""
    if pa.types.is_timestamp(data_type):
        return pa.string()
    if pa.types.is_list(data_type):
        return pa.list_(_with_texts_for_moments(data_type.value_type))
    if pa.types.is_struct(data_type):
        return pa.struct([(each.name, _with_texts_for_moments(each.type)) for each in data_type])
    return data_type


def _with_moments(schema: pa.Schema, blocks: Sequence[bytes], path: str) -> pa.Schema:
    """Return the schema with dates and timestamps where all texts are such."""
    parser = JsonParser(schema)
    tables = []
    for block in blocks:
        with contextlib.suppress(pa.ArrowInvalid):  # of a malformed line the job tells
            tables.append(parser.parse(block))
    mixed: list[str] = []
    fields = [
        field.with_type(
            _moments_of(field.type, [chunk for table in tables for chunk in table[index].chunks], field.name, mixed)
        )
        for index, field in enumerate(schema)
    ]
    for name in mixed:
        warn_user(
            f"read_json({path!r}): {name!r} has timestamps with an offset from UTC and others without one, and is read"
            " as text; .str.to_timestamp(format, strict=False) makes timestamps of either kind"
        )
    return pa.schema(fields)


def _moments_of(data_type: pa.DataType, chunks: Sequence[pa.Array], name: str, mixed: list[str]) -> pa.DataType:
    """Return a type with dates and timestamps where all texts of some values are such."""
    if pa.types.is_list(data_type):
        return pa.list_(_moments_of(data_type.value_type, [chunk.flatten() for chunk in chunks], name, mixed))
    if pa.types.is_struct(data_type):
        return pa.struct(
            [
                (
                    each.name,
                    _moments_of(each.type, [chunk.field(index) for chunk in chunks], f"{name}.{each.name}", mixed),
                )
                for index, each in enumerate(data_type)
            ]
        )
    if not pa.types.is_string(data_type):
        return data_type
    texts = pa.chunked_array(chunks, pa.string())
    if has_mixed_offsets(texts):
        mixed.append(name)
    return moment_type(texts) or data_type


def _large_type(field: pa.Field, blocks: Sequence[bytes], path: str) -> pa.DataType:
    """Return the type of a column, which Arrow has as a double where whole numbers are beyond int64."""
    name = re.escape(json.dumps(field.name, ensure_ascii=False).encode())
    if not pa.types.is_float64(field.type) or not any(re.search(name + _LONG_NUMBER, block) for block in blocks):
        return field.type
    if not any(re.search(name + _FRACTION, block) for block in blocks):
        for data_type in _LARGE_TYPES:
            with contextlib.suppress(pa.ArrowInvalid):
                parser = JsonParser(pa.schema([(field.name, data_type)]))
                for block in blocks:
                    parser.parse(block)
                return data_type
    warn_user(
        f"read_json({path!r}): whole numbers of 17 digits and more in column {field.name!r} are read as float64, which"
        " does not keep them; pass schema= with string for it, which takes them as they are written"
    )
    return field.type


def _advice(reason: str) -> str:
    """Return the advice if no schema is found; "" where the reason says what to do."""
    if OVER_LINES in reason or SEVERAL in reason or NOT_UTF8 in reason:
        return ""
    if " changed from " in reason:
        return f"; {_MIXED}"
    if "JSON parse error" in reason:
        return "; mend it, or pass schema= and on_bad_row='skip', which leaves such lines out"
    return "; pass schema="


def _placed(reason: str, block: Block) -> str:
    """Replace the row in Arrow's message, which counts from 0 in a block, by the line of the file."""
    found = _ARROWS_ROW.search(reason)
    if found is None:
        return reason
    filled = [line for line, text in enumerate(block.data.split(b"\n"), 1) if text.strip()]
    number = int(found[1])
    place = f" in line {filled[number]}" if block.is_begin and number < len(filled) else ""
    return reason[: found.start()].rstrip(".") + place


def _is_deep(data_type: pa.DataType) -> bool:
    """Return whether lists and structs lie within each other deeper than a plan takes."""
    level = [data_type]
    for _ in range(_DEPTH_MAX):
        level = [each.field(index).type for each in level for index in range(each.num_fields)]
        if not level:
            return False
    return True


def _with_texts(data_type: pa.DataType) -> pa.DataType:
    """Return a type in which what has no value is text."""
    if pa.types.is_null(data_type):
        return pa.string()
    if pa.types.is_list(data_type):
        return pa.list_(_with_texts(data_type.value_type))
    if pa.types.is_struct(data_type):
        return pa.struct([(each.name, _with_texts(each.type)) for each in data_type])
    return data_type
