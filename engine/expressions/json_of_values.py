"""JSON texts of values, made column by column by Arrow's functions: of ``to_json``, and of the lines that are written.

    {"a": [1, null]}    ──►    texts of 1 and null ──► [1,null] ──► {"a":[1,null]}

A null is ``null``, and so is a double that is no number or infinite, for which JSON has no text. Decimals, dates and
times are texts, timestamps by ISO 8601 (``2024-05-01T10:00:00``); binary values must be UTF-8. Structs are objects,
lists arrays, and maps with keys of text objects.

Held by: tests/expressions/test_json_of_values.py
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.binding import Binding, NoMatchError, Operand, Options
from engine.expressions.number_functions import of_array
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.records.stored_types import stored

_NULL: Final = scalar_of("null")
_NOTHING: Final = scalar_of("")
#: characters with escapes of their own, the backslash first
_ESCAPES: Final = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
#: offset of an hour and minutes, which ISO 8601 parts by a colon where a time has colons
_OFFSET: Final = r"([+-]\d\d)(\d\d)$"
_ESCAPED: Final = r'[\x00-\x1f"\\]'
_OTHERS: Final = [chr(code) for code in range(0x20) if chr(code) not in "\n\r\t"]


def bind_to_json(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the JSON text of a value; null of null."""
    data_type = operands[0].type
    try:
        texts_of(pa.nulls(0, data_type))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, SchemaError):
        raise NoMatchError(f"{data_type} has no form in JSON: cast it") from None
    return Binding(of_array(lambda column: _where_valid(column, texts_of(column))), (None,))


def objects(names: list[str], columns: list[pa.Array], row_count: int, end: str = "") -> pa.Array:
    """Return an object for each row, of members of these names."""
    parts: list[Any] = []
    for index, (name, column) in enumerate(zip(names, columns, strict=True)):
        parts += [scalar_of(f"{',' if index else '{'}{json.dumps(name, ensure_ascii=False)}:"), texts_of(column)]
    if not parts:
        parts = [pa.repeat(scalar_of("{"), row_count)]
    return pc.binary_join_element_wise(*parts, scalar_of("}" + end), _NOTHING)


def texts_of(column: pa.Array) -> pa.Array:
    """Return the JSON text of each value, without nulls."""
    texts = _texts_of_values(column)
    if texts.null_count:
        texts = pc.fill_null(texts, _NULL)
    return texts


def _texts_of_values(column: pa.Array) -> pa.Array:
    """Return the JSON text of each value; null for null."""
    column = stored(column)
    data_type = column.type
    types = pa.types
    if types.is_null(data_type):
        return pa.nulls(len(column), pa.string())
    if types.is_boolean(data_type) or types.is_integer(data_type):
        return pc.cast(column, pa.string())
    if types.is_floating(data_type):
        return pc.if_else(pc.is_finite(column), pc.cast(column, pa.string()), pa.scalar(None, pa.string()))
    if types.is_struct(data_type):
        names = [field.name for field in data_type]
        children = [pc.struct_field(column, [index]) for index in range(len(names))]
        return _where_valid(column, objects(names, children, len(column)))
    if types.is_map(data_type):
        return _maps(column)
    if types.is_nested(data_type):
        return _lists(column)
    if types.is_duration(data_type):
        return pc.cast(pc.cast(column, pa.int64()), pa.string())
    texts = pc.cast(column, pa.string())
    if types.is_timestamp(data_type):
        texts = pc.replace_substring(texts, pattern=" ", replacement="T")
        if data_type.tz:
            texts = pc.replace_substring_regex(texts, pattern=_OFFSET, replacement=r"\1:\2")
    return _quoted(texts)


def _where_valid(column: pa.Array, texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_valid(column), texts, pa.scalar(None, pa.string())) if column.null_count else texts


def _quoted(texts: pa.Array) -> pa.Array:
    """Return strings of JSON."""
    if pc.any(pc.match_substring_regex(texts, pattern=_ESCAPED)).as_py():
        for character, escape in _ESCAPES:
            texts = pc.replace_substring(texts, pattern=character, replacement=escape)
        for character in _OTHERS:
            texts = pc.replace_substring(texts, pattern=character, replacement=f"\\u{ord(character):04x}")
    mark = scalar_of('"')
    return pc.binary_join_element_wise(mark, texts, mark, _NOTHING)


def _joined(column: pa.Array, texts: pa.Array, begin: str, end: str) -> pa.Array:
    """Return a text for each list: the texts of its values, as ``list_flatten`` gives them, with commas between."""
    lengths = pc.cast(pc.fill_null(pc.list_value_length(column), 0), pa.int32())
    # Offsets of the values that are left where null lists have none.
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), scalar_of(","))
    return _where_valid(column, pc.binary_join_element_wise(scalar_of(begin), joined, scalar_of(end), _NOTHING))


def _lists(column: pa.Array) -> pa.Array:
    return _joined(column, texts_of(pc.list_flatten(column)), "[", "]")


def _maps(column: pa.Array) -> pa.Array:
    """Return objects; of maps with other keys than text there are none."""
    if not pa.types.is_string(column.type.key_type):
        raise SchemaError("keys of objects are text")
    if not len(column):
        return pa.nulls(0, pa.string())
    if column.offset:
        # Offsets and nulls of a slice do not go together: a copy begins at 0.
        column = pa.concat_arrays([column, column.slice(0, 0)])
    entries = pa.StructArray.from_arrays([column.keys, column.items], ["key", "value"])
    lists = pa.ListArray.from_arrays(column.offsets, entries, mask=pc.is_null(column))
    entries = pc.list_flatten(lists)
    keys, values = _quoted(pc.struct_field(entries, [0])), texts_of(pc.struct_field(entries, [1]))
    members = pc.binary_join_element_wise(keys, values, scalar_of(":"))
    return _joined(lists, members, "{", "}")
