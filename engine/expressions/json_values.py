"""JSON texts as values of a type: ``.str.json_parse(type)``, by Arrow's reader of JSON lines.

    {"a": 1}     ─►   {"v":[{"a": 1}]}     a line each; read_json by the schema v: list of the type  ─►  the element
    no JSON           {"v":[no JSON]}      fails: such texts are found in pieces of the batch, and null

Null is what is null, no JSON, or does not fit the type; fields of a struct that are not there are null, others are left
out. A text that is two values, or none, has a list of another length and is null. Dates and timestamps are read as
texts, and are those that ``try_cast`` finds in them: Arrow's reader of JSON moves the clock by an offset in silence.

Limits: a text that looks like a value and is none costs a hundred times one that is. A text that is written to close
the list and to open another one, ``1],"v2":[2``, is taken for its first value.

Held by: tests/expressions/test_json_texts.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.argument_kinds import text
from engine.expressions.binding import Binding, NoMatchError, Operand, Options
from engine.expressions.casting import cast_kernel, tried_by
from engine.expressions.number_functions import of_array
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: rows of a piece whose texts are checked one by one when one of them is bad
_PIECE_ROWS: Final = 256
_PLACE: Final = re.compile(r"in row (\d+)$")
_LEAVES: Final = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_decimal,
)


def bind_json_parse(operands: Sequence[Operand], _options: Options) -> Binding:
    """Bind the value of the type of the second argument, which is a null."""
    target = operands[1].type
    read_as = _read_type(target)
    data_type = text(operands[0].type)

    def parsed(texts: pa.Array) -> pa.Array:
        found, lost = _of_type(_parsed(texts, read_as), target)
        return found if lost is None else pc.if_else(lost, scalar_of(None, target), found)

    of_texts = of_array(parsed)
    return Binding(lambda texts, _type: of_texts(texts), (data_type, None))


def _read_type(target: pa.DataType) -> pa.DataType:
    """Return the type that Arrow's reader is told for a type; NoMatchError where there is none."""
    if pa.types.is_list(target):
        return pa.list_(target.value_field.with_type(_read_type(target.value_type)))
    if pa.types.is_struct(target):
        return pa.struct([field.with_type(_read_type(field.type)).with_nullable(True) for field in target])
    if pa.types.is_date32(target) or pa.types.is_timestamp(target):
        return pa.string()
    if any(is_kind(target) for is_kind in _LEAVES):
        return target
    raise NoMatchError(f"JSON has no {target}; bool, numbers, string, date32, timestamps, decimals, lists and structs")


def _parsed(texts: pa.Array, read_as: pa.DataType) -> pa.Array:
    """Return the values of texts, as the type that they are read as."""
    if len(texts) == 0 or texts.null_count == len(texts):
        return pa.nulls(len(texts), read_as)
    found, _ = _read(texts, read_as)
    if found is not None:
        return found
    possible = _possible(texts, read_as)
    pieces = (possible.slice(start, _PIECE_ROWS) for start in range(0, len(texts), _PIECE_ROWS))
    return pa.concat_arrays([_without_bad(piece, read_as) for piece in pieces])


def _possible(texts: pa.Array, read_as: pa.DataType) -> pa.Array:
    """Return texts with null in place of those that cannot be a value by how they begin and end."""
    brackets = r"\{.*\}" if pa.types.is_struct(read_as) else r"\[.*\]" if pa.types.is_list(read_as) else r"[^\s].*"
    fits = pc.match_substring_regex(texts, pattern=rf"(?s)^\s*({brackets}|null)\s*$")
    return pc.if_else(fits, texts, pa.scalar(None, texts.type))


def _without_bad(texts: pa.Array, read_as: pa.DataType) -> pa.Array:
    """Return the values of texts, null for those that are none."""
    count = len(texts)
    found, place = _read(texts, read_as)
    if found is not None:
        return found
    if count == 1:
        return pa.nulls(1, read_as)
    if place is not None and place < count and _read(texts.slice(place, 1), read_as)[0] is None:
        parts = [texts.slice(0, place), texts.slice(place + 1)]
        before, behind = (_without_bad(part, read_as) if len(part) else pa.nulls(0, read_as) for part in parts)
        return pa.concat_arrays([before, pa.nulls(1, read_as), behind])
    half = count // 2
    return pa.concat_arrays([_without_bad(texts.slice(0, half), read_as), _without_bad(texts.slice(half), read_as)])


def _read(texts: pa.Array, read_as: pa.DataType) -> tuple[pa.Array | None, int | None]:
    """Return the values; None where a text is none, and which one it is where Arrow says so."""
    from pyarrow import json as arrow_json

    large = pc.cast(pc.fill_null(texts, "null"), pa.large_string())
    before, behind, nothing = (pa.scalar(one, pa.large_string()) for one in ('{"v":[', "]}\n", ""))
    lines = pc.binary_join_element_wise(before, large, behind, nothing)
    size = pc.sum(pc.binary_length(lines)).as_py()
    schema = pa.schema([("v", pa.list_(read_as))])
    options = arrow_json.ParseOptions(schema, newlines_in_values=True, unexpected_field_behavior="ignore")
    read = arrow_json.ReadOptions(use_threads=False, block_size=size + 1)
    try:
        table = arrow_json.read_json(pa.BufferReader(lines.buffers()[2].slice(0, size)), read, options)
    except pa.ArrowInvalid as error:
        place = _PLACE.search(str(error))
        return None, None if place is None else int(place[1])
    column = table.column("v").combine_chunks()
    lists = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    if len(lists) != len(texts) or not pc.all(pc.equal(pc.list_value_length(lists), 1)).as_py():
        return None, None
    return lists.flatten(), None


def _of_type(values: pa.Array, target: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    """Return values that were read as ``_read_type`` says as those of a type, and which have a text that is none.

    None: all are of the type. In place of what has such a text within is a value that is masked.
    """
    if values.type == target:
        return values, None
    if pa.types.is_struct(target):
        return _structs(values, target)
    if pa.types.is_list(target):
        return _lists(values, target)
    found = tried_by(cast_kernel(values.type, target), values.type, target)(values)
    return found, None if found.null_count == values.null_count else pc.and_(pc.is_null(found), pc.is_valid(values))


def _structs(values: pa.StructArray, target: pa.StructType) -> tuple[pa.Array, pa.Array | None]:
    children, lost = [], None
    for index, field in enumerate(target):
        child, child_lost = _of_type(pc.struct_field(values, [index]), field.type)
        children.append(child)
        if child_lost is not None:
            lost = child_lost if lost is None else pc.or_(lost, child_lost)
    return pa.StructArray.from_arrays(children, fields=list(target), mask=pc.is_null(values)), lost


def _lists(values: pa.ListArray, target: pa.ListType) -> tuple[pa.Array, pa.Array | None]:
    offsets = values.offsets
    within = values.values.slice(offsets[0].as_py(), offsets[-1].as_py() - offsets[0].as_py())
    offsets = pc.subtract(offsets, offsets[0])
    elements, lost = _of_type(within, target.value_type)
    lists = pa.ListArray.from_arrays(offsets, elements, target, mask=pc.is_null(values))
    if lost is None:
        return lists, None
    # The sum up to the end of a list is another one than up to its begin where it has an element that is lost.
    counts = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(pc.cast(lost, pa.int64()))])
    at_places = counts.take(offsets)
    return lists, pc.not_equal(at_places.slice(0, len(values)), at_places.slice(1))
